// Package chromium drives a headless Chromium, for tests that look at what a
// user sees. Only tests and the benchmark use it.
package chromium

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/offspring"
)

// Browser is a headless Chromium, driven over a pair of pipes: each message is
// JSON and ends with a zero byte.
type Browser struct {
	t        fixture.TB
	in       *os.File
	messages chan message
	next     atomic.Int64
	session  string
	Requests []string // addresses that the page asked for
	Errors   []string // what the page's console complained of
}

type message struct {
	ID      int64           `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
	Session string          `json:"sessionId"`
}

// Patience is how long the browser may take for anything.
var Patience = 60 * time.Second

// Open starts a browser with one page. It ends with the test.
func Open(t fixture.TB, width, height int) *Browser {
	t.Helper()
	path := fixture.Tool(t, "chromium", "chromium-browser", "google-chrome")
	toBrowser, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Not the test's own: processes of the browser may write into it a moment longer than
	// the browser lives, and then it is not empty when the test removes it.
	dir, err := os.MkdirTemp("", "candid-chromium-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(Patience); os.RemoveAll(dir) != nil && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
	})
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(dir, "user"),
		fmt.Sprintf("--window-size=%d,%d", width, height), "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir, "TZ=UTC")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // 3 and 4
	if err := offspring.Start(cmd); err != nil {
		t.Fatal(err)
	}
	toBrowser.Close()
	fromBrowser.Close()
	b := &Browser{t: t, in: in, messages: make(chan message, 1024)}
	go func() {
		defer close(b.messages)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			raw, err := r.ReadBytes(0)
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(raw[:len(raw)-1], &m) == nil {
				b.messages <- m
			}
		}
	}()
	t.Cleanup(func() {
		in.Close() // the browser ends when its pipe does
		done := make(chan struct{})
		go func() {
			for range b.messages {
			}
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
		out.Close()
	})

	var target struct{ TargetID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.Call(domain+".enable", nil, nil)
	}
	b.Size(width, height, 1)
	return b
}

// Call sends a command and waits for its answer; what else arrives is noted.
func (b *Browser) Call(method string, params any, result any) {
	b.t.Helper()
	id := b.next.Add(1)
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	raw, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(raw, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	late := time.After(Patience)
	for {
		select {
		case m, ok := <-b.messages:
			if !ok {
				b.t.Fatalf("%s: the browser is gone", method)
			}
			if m.ID != id {
				b.note(m)
				continue
			}
			if m.Error != nil {
				b.t.Fatalf("%s: %s", method, m.Error)
			}
			if result != nil {
				if err := json.Unmarshal(m.Result, result); err != nil {
					b.t.Fatalf("%s: %v in %s", method, err, m.Result)
				}
			}
			return
		case <-late:
			b.t.Fatalf("%s: no answer", method)
		}
	}
}

func (b *Browser) note(m message) {
	switch m.Method {
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if json.Unmarshal(m.Params, &p) == nil && !strings.HasPrefix(p.Request.URL, "data:") {
			b.Requests = append(b.Requests, p.Request.URL)
		}
	case "Runtime.exceptionThrown", "Log.entryAdded":
		if strings.Contains(string(m.Params), "readback operations") {
			return // the tests read the canvas back, the page does not
		}
		b.Errors = append(b.Errors, string(m.Params))
	}
}

// Eval gives the value of a JavaScript expression.
func (b *Browser) Eval(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if result != nil && r.Result.Value != nil {
		if err := json.Unmarshal(r.Result.Value, result); err != nil {
			b.t.Fatalf("%s: %v in %s", expression, err, r.Result.Value)
		}
	}
}

// Text gives the value of a JavaScript expression that is a string.
func (b *Browser) Text(expression string) string {
	b.t.Helper()
	var s string
	b.Eval(expression, &s)
	return s
}

// Show opens an address and waits until the expression is true there.
func (b *Browser) Show(url, ready string) {
	b.t.Helper()
	b.Call("Page.navigate", map[string]any{"url": "about:blank"}, nil)
	b.Call("Page.navigate", map[string]any{"url": url}, nil)
	b.Until("location.protocol !== 'about:' && (" + ready + ")")
}

// Until waits until the expression is true.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		if b.Text("String(!!("+expression+"))") == "true" {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s never came: %s; %s", expression, b.Text("document.body?.innerText ?? ''"), b.Errors)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Size sets the window's size in CSS pixels, and the device's pixels per one of
// those.
func (b *Browser) Size(width, height int, scale float64) {
	b.t.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": false}, nil)
}

// Dark says whether the user prefers dark pages; motion is never wanted.
func (b *Browser) Dark(on bool) {
	b.t.Helper()
	value := "light"
	if on {
		value = "dark"
	}
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []any{
		map[string]any{"name": "prefers-color-scheme", "value": value},
		map[string]any{"name": "prefers-reduced-motion", "value": "reduce"},
	}}, nil)
}

var keyCodes = map[string]int{
	"Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
	"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
}

// Key presses a key, with the text that it types.
func (b *Browser) Key(key string) {
	b.t.Helper()
	p := map[string]any{"type": "keyDown", "key": key}
	if code := keyCodes[key]; code != 0 { // what the browser itself does with it goes by its number
		p["windowsVirtualKeyCode"] = code
	}
	if len(key) == 1 {
		p["text"] = key
	}
	if key == "Enter" {
		p["text"] = "\r"
	}
	b.Call("Input.dispatchKeyEvent", p, nil)
	b.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Picture writes what is shown to a PNG file.
func (b *Browser) Picture(file string) {
	b.t.Helper()
	// What is drawn in the next frame is on the picture.
	b.Eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(0))))", nil)
	var shot struct{ Data []byte }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	if err := os.WriteFile(file, shot.Data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
