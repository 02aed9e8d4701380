package view

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/store"
	"github.com/candid-profiler/candid/internal/store/captures"
)

// ofStore returns a server of a store in which two services ran for two minutes, now and a day before,
// and when the later time began.
func ofStore(t *testing.T) (s *Server, at time.Time) {
	t.Helper()
	dir := t.TempDir()
	w, err := store.Create(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at = time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	for _, begin := range []time.Time{at.AddDate(0, 0, -1), at} {
		for i := range 8 {
			p := profiletest.Java()
			name := []string{"shop/ä #1", "mail"}[i%2]
			if name == "mail" {
				p = profile.Apply(p, profile.Filter{To: time.Second})
			}
			from := begin.Add(time.Duration(i) * 15 * time.Second)
			p.Meta.Start = from
			if err := w.Append(p, func(int) string { return name }, from, from.Add(15*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	capture(t, dir, "shop/ä #1", at.Add(time.Minute))
	capture(t, dir, "mail", at.Add(-time.Hour))
	r, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s = served(t)
	s.ServeStore("the store", r)
	return s, at
}

// capture puts a capture of a service beside the history, which lasted 5 s.
func capture(t *testing.T, dir, service string, at time.Time) {
	t.Helper()
	file := filepath.Join(dir, captures.Dir, captures.Name(service, at))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	p := profiletest.Java()
	p.Meta.Start = at
	if err := errors.Join(format.Write(f, "jfr.zst", p, format.Options{}), f.Close(), os.Chtimes(file, at, at.Add(5*time.Second))); err != nil {
		t.Fatal(err)
	}
}

// The page of a store lists the services, and shows the range that is chosen on the strip in the page
// of recordings, by itself or compared with an earlier one.
func TestStorePage(t *testing.T) {
	s, at := ofStore(t)
	b := openView(t, s)
	inner := "document.querySelector('iframe').contentWindow"
	ready := func(want string) {
		t.Helper()
		b.Until("!candidStore.busy()")
		b.Until(fmt.Sprintf("%s.location.href.includes(%q) && %[1]s.document.documentElement?.dataset.ready && !%[1]s.candid.busy()", inner, want))
	}
	show := func(hash string) {
		t.Helper()
		b.Show(b.url+hash, "document.documentElement?.dataset.ready")
	}
	show(StoreAddress("", at, at.Add(2*time.Minute)))
	ready("/-/%3D/")
	b.Until("document.querySelectorAll('nav:first-child button').length == 3")
	if got := b.Text("[...document.querySelectorAll('nav:first-child button')].map((x) => x.textContent).join('|')"); !strings.Contains(got, "|shop/ä #1") || strings.Index(got, "shop") > strings.Index(got, "mail") {
		t.Errorf("services %q", got)
	}
	if got := b.Text(inner + ".candid.app?.header?.name ?? ''"); got != "" && !strings.Contains(got, "all services") {
		t.Errorf("the frame shows %q", got)
	}
	b.Text("[...document.querySelectorAll('nav button')].find((x) => x.textContent.startsWith('shop')).click(), ''")
	ready("%3Dshop%2F")
	if got := b.Text(inner + ".document.title"); !strings.Contains(got, "shop/ä #1") {
		t.Errorf("the frame's title is %q", got)
	}
	b.Text("(() => { const s = document.querySelector('select'); s.value = 'yesterday'; s.dispatchEvent(new Event('change')); return ''; })()")
	ready(fmt.Sprintf("/%d/", at.AddDate(0, 0, -1).UnixMilli()))
	if got := b.Text(inner + ".document.body.innerText"); !strings.Contains(got, at.AddDate(0, 0, -1).Format("2006-01-02 15:04:05")) {
		t.Errorf("nothing is compared: %.300q", got)
	}
	// A capture of the service in the range, of which there is one.
	if got := b.Text("[...document.querySelectorAll('nav + nav button')].map((x) => x.textContent).join('|')"); !strings.HasSuffix(got, "5 s") || strings.Contains(got, "|") {
		t.Errorf("captures %q", got)
	}
	b.Text("document.querySelector('nav + nav button').click(), ''")
	ready("/capture/")
	if got := b.Text(inner + ".document.title"); !strings.Contains(got, "java -jar shop.jar") {
		t.Errorf("the frame's title is %q", got)
	}
	if got := b.Text("location.hash"); !strings.Contains(got, "capture=") {
		t.Errorf("the address %q does not keep the capture", got)
	}
	b.Text("[...document.querySelectorAll('nav button')].find((x) => x.textContent.startsWith('All')).click(), ''")
	ready("/%3D/")
	// Half of the strip, by the mouse.
	before := b.Text("location.hash")
	b.Text(`(() => {
		const c = document.querySelector('.strip canvas'), r = c.getBoundingClientRect();
		for (const [type, x] of [['pointerdown', 0.5], ['pointermove', 0.7], ['pointerup', 1]])
			c.dispatchEvent(new PointerEvent(type, { clientX: r.left + x * r.width, clientY: r.top + 9, pointerId: 1, bubbles: true }));
		return '';
	})()`)
	b.Until("!candidStore.busy()")
	if after := b.Text("location.hash"); after == before && !strings.Contains(fmt.Sprint(b.Errors), "pointer") {
		t.Errorf("drawing on the strip chose nothing: %s", after)
	}
}

// Questions of a store's page are checked.
func TestStoreQuestions(t *testing.T) {
	s, at := ofStore(t)
	from, to := at.UnixMilli(), at.Add(2*time.Minute).UnixMilli()
	for path, want := range map[string]int{
		"about":         200,
		"services":      400,
		"services?from": 400,
		fmt.Sprintf("services?from=%d&to=%d", from, to):                                    200,
		fmt.Sprintf("services?from=%d&to=%d", to, from):                                    400,
		fmt.Sprintf("captures?from=%d&to=%d", from, to):                                    200,
		fmt.Sprintf("captures?from=%d&to=%d", to, from):                                    400,
		"capture/none.jfr.zst/":                                                            404,
		"capture/" + url.PathEscape(captures.Name("mail", at.Add(-time.Hour))) + "/":       200,
		"capture/" + url.PathEscape(captures.Name("mail", at.Add(-time.Hour))) + "/0/tree": 200,
		fmt.Sprintf("strip?from=%d&to=%d&n=10", from, to):                                  200,
		fmt.Sprintf("strip?from=%d&to=%d&n=100000", from, to):                              400,
		fmt.Sprintf("show/%d-%d/-/%%3Dmail/0/tree", from, to):                              200,
		fmt.Sprintf("show/%d-%d/-/mail/0/tree", from, to):                                  404,
		fmt.Sprintf("show/%d-%d/-/%%3Dmail/", from, to):                                    200,
		fmt.Sprintf("show/%d-%d/-/%%3Dmail/view.js", from, to):                             200,
		fmt.Sprintf("show/%d-%d/-/%%3Dmail", from, to):                                     404,
		fmt.Sprintf("show/%d-%d/x/%%3Dmail/", from, to):                                    404,
		"show/99999999999999999999-1/-/%3D/":                                               404,
		"recordings":                                                                       404,
	} {
		res, err := http.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d: %.200s", path, res.StatusCode, want, body)
		}
	}
}
