package view

import (
	"net/http"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
)

// TestPageCompares opens several files. Which one is compared with which is chosen and swapped in
// the page, and kept in the address.
func TestPageCompares(t *testing.T) {
	t.Parallel()
	before, after := twoServers(0)
	third, _ := twoServers(0)
	var served3 []*Recording
	for i, p := range []*profile.Profile{before, after, third} {
		r, err := Open([]string{"old.jfr", "new.jfr", "later.jfr"}[i], p)
		if err != nil {
			t.Fatal(err)
		}
		served3 = append(served3, r)
	}
	served3[2].growing = true
	s := served(t, served3...)
	b := openView(t, s)
	choose := func(label, value string) {
		t.Helper()
		b.Eval("(e => { e.value = "+quoted(value)+"; e.dispatchEvent(new Event('change')); })(document.querySelector('[aria-label=\""+label+"\"]'))", nil)
	}
	is := func(title, hash string) {
		t.Helper()
		b.Until("document.title === " + quoted(title+" · candid") + " && !candid.busy()")
		hash += "&starts=shown"
		if got := b.Text("location.hash"); got != hash {
			t.Errorf("the address of %s is %s, want %s", title, got, hash)
		}
	}
	same := func(p *profile.Profile, what string) {
		t.Helper()
		b.sameAs(p, what, profile.Filter{})
	}
	b.open("#recording=1&tab=methods")
	choose("Compare with", "0")
	is("old.jfr → new.jfr", "#recording=1&against=0&tab=methods")
	if b.Text("String(candid.compared())") != "true" {
		t.Error("nothing is compared")
	}
	same(after, "after")
	// Swapped, and the same from the address.
	b.Eval("document.querySelector('.files button').click()", nil)
	is("new.jfr → old.jfr", "#against=1&tab=methods")
	same(before, "turned round")
	b.open("#recording=1&against=0&tab=threads")
	is("old.jfr → new.jfr", "#recording=1&against=0&tab=threads")
	// If the recording that is compared with is chosen to be shown, the two change places.
	choose("Recording", "0")
	is("new.jfr → old.jfr", "#against=1&tab=threads")
	// A recording that is still being made cannot be compared, and what was shown stays.
	choose("Compare with", "2")
	b.Until("document.querySelector('.alert').textContent.includes('later.jfr is still being recorded')")
	is("new.jfr → old.jfr", "#against=1&tab=threads")
	if got := b.Text("document.querySelector('[aria-label=\"Compare with\"]').value"); got != "1" {
		t.Errorf("the page says that it compares with %s", got)
	}
	b.Errors = nil // the browser logs the answer 400
	choose("Compare with", "-1")
	is("java -jar old.jar", "#tab=threads")
	same(before, "alone")
	b.quiet()
	for name, code := range map[string]int{"0-1": 200, "1-0": 200, "2-0": 400, "0-3": 404, "-0": 404, "0-": 404, "0-1-2": 404, "0--1": 404} {
		if res, body := get(t, http.MethodGet, s.URL()+name+"/tree", ""); res.StatusCode != code {
			t.Errorf("%s: %d %s", name, res.StatusCode, strings.TrimSpace(string(body)))
		}
	}
	if len(s.pairs) > keptPairs {
		t.Errorf("%d pairs are kept", len(s.pairs))
	}
}
