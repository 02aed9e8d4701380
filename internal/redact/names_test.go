package redact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// The quick look at a name never leaves out one that the regular expression matches.
func TestMayName(t *testing.T) {
	words := []string{"passw", "Passphrase", "PASSCODE", "storepass", "keypass", "srcpass", "destpass", "trustpass", "pwd", "pass", "auth", "pin",
		"otp", "pat", "jwt", "bearer", "cred", "creds", "secret", "token", "credential", "api-key", "apikey", "access_key", "private.key", "accountkey",
		"signing-key", "masterkey", "client_key", "encryption-key", "licensekey", "licence-key", "signature", "authorization", "cookie", "sonar.login",
		"\u017fecret", "to\u212aen", "api_\u212aey", "path", "spin", "x", "-", "_", ".", "march", "dumpbase", "o2", "é"}
	rng := rand.New(rand.NewPCG(1, 2))
	found, quick := 0, 0
	for range 50000 {
		s := ""
		for range 1 + rng.IntN(4) {
			if s += words[rng.IntN(len(words))]; rng.IntN(3) == 0 && len(s) > 1 {
				at := rng.IntN(len(s))
				s = s[:at] + s[at+1:]
			}
			if rng.IntN(4) == 0 {
				s = strings.ToUpper(s)
			}
		}
		is := name.MatchString(s)
		if is {
			found++
		}
		if !mayName(s) {
			if quick++; is {
				t.Fatalf("%q is the name of a secret", s)
			}
		}
	}
	if found < 1000 || quick < 1000 {
		t.Errorf("%d names of secrets, %d others", found, quick)
	}
	if mayName("-fasynchronous-unwind-tables") || mayName("-dumpbase-ext") {
		t.Error("a compiler's options are looked at twice")
	}
}
