// Package chromium drives a headless Chromium, for tests that look at what a
// user sees. Only tests and the benchmark use it.
package chromium

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// Browser is one page of a headless Chromium, in a profile of its own.
type Browser struct {
	t        fixture.TB
	process  *process
	session  string
	Requests []string // addresses that the page requested
	Errors   []string // errors on the page's console
}

type message struct {
	ID      int64           `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
	Session string          `json:"sessionId"`
}

// Patience is how long the browser may take to answer a command or to reach a state.
var Patience = 60 * time.Second

// Open opens a page in a profile that nothing else uses and closes it when the test ends. If Run
// runs the tests, they take turns in as many browsers as there are pages open at the same time.
func Open(t fixture.TB, width, height int) *Browser {
	t.Helper()
	p, release := take(t)
	b := &Browser{t: t, process: p}
	t.Cleanup(release)

	var context struct{ BrowserContextID string }
	b.Call("Target.createBrowserContext", nil, &context)
	var target struct{ TargetID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context.BrowserContextID, "width": width, "height": height}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	t.Cleanup(func() {
		b.session = ""
		p.dispose(context.BrowserContextID)
	})
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.Call(domain+".enable", nil, nil)
	}
	b.Size(width, height, 1)
	return b
}

// Call sends a command and waits for its answer; messages that arrive in between are noted.
func (b *Browser) Call(method string, params any, result any) {
	b.t.Helper()
	id, err := b.process.send(method, b.session, params)
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	late := time.After(Patience)
	for {
		select {
		case m, ok := <-b.process.messages:
			if !ok {
				b.process.failed = true
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
			b.process.failed = true
			b.t.Fatalf("%s: no answer in %v", method, Patience)
		}
	}
}

func (b *Browser) note(m message) {
	if m.Session != b.session {
		return // of the previous page
	}
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

// Eval evaluates a JavaScript expression into result.
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

// Text returns the value of a JavaScript expression that is a string.
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

// Size sets the window's size in CSS pixels, and the number of device pixels per CSS pixel.
func (b *Browser) Size(width, height int, scale float64) {
	b.t.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": false}, nil)
}

// Dark sets whether the user prefers dark pages; reduced motion is always preferred.
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

// Key presses a key, including the text that it types.
func (b *Browser) Key(key string) {
	b.t.Helper()
	p := map[string]any{"type": "keyDown", "key": key}
	if code := keyCodes[key]; code != 0 { // the browser's own handling of the key depends on its code
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

// Picture writes a screenshot to a PNG file.
func (b *Browser) Picture(file string) {
	b.t.Helper()
	// The screenshot shows what is drawn in the next frame.
	b.Eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(0))))", nil)
	var shot struct{ Data []byte }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	if err := os.WriteFile(file, shot.Data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
