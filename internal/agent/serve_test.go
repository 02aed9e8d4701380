package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/agent/config"
)

// certified writes a certificate for 127.0.0.1, which is its own authority, and its key.
func certified(t *testing.T, cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: filepath.Base(cert)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An address that is protected answers clients with a certificate that it knows and the right token, and no
// others; the files are read again with the file of the agent, and a token that is wrong changes nothing.
func TestListenAdmits(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"agent", "client", "stranger"} {
		certified(t, at(name+".pem"), at(name+".key"))
	}
	const first, second = "the first token of this agent", "the second token of this agent"
	write(t, at("token"), first+"\n")
	a := &Agent{o: Options{Log: func(string) {}}, conf: &config.Config{}, ready: true}
	conf := &config.Config{Listen: config.Listen{
		Address: "127.0.0.1:0", TokenFile: at("token"), TLS: config.TLS{CA: at("client.pem"), Cert: at("agent.pem"), Key: at("agent.key")},
	}}
	var s servers
	if err := s.open(a, conf); err != nil {
		t.Fatal(err)
	}
	defer func() { s.close() }()
	roots := x509.NewCertPool()
	if b, err := os.ReadFile(at("agent.pem")); err != nil || !roots.AppendCertsFromPEM(b) {
		t.Fatalf("the agent's certificate: %v", err)
	}
	ask := func(method, path, who, token string) int {
		tc := &tls.Config{RootCAs: roots}
		if who != "" {
			pair, err := tls.LoadX509KeyPair(at(who+".pem"), at(who+".key"))
			if err != nil {
				t.Fatal(err)
			}
			// Whichever authority the server asks for: a client may try anything.
			tc.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		transport := &http.Transport{TLSClientConfig: tc}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(req)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		method, path, who, token string
		want                     int
	}{
		{"GET", "/healthz", "client", "", http.StatusOK},
		{"GET", "/healthz", "", first, 0},
		{"GET", "/healthz", "stranger", first, 0},
		{"GET", "/nothing", "client", "", http.StatusUnauthorized},
		{"GET", "/nothing", "client", first + "x", http.StatusUnauthorized},
		{"GET", "/nothing", "client", second, http.StatusUnauthorized},
		{"GET", "/nothing", "client", first, http.StatusNotFound},
		{"POST", "/nothing", "client", first, http.StatusMethodNotAllowed},
	} {
		if got := ask(c.method, c.path, c.who, c.token); got != c.want {
			t.Errorf("%s %s as %q with the token %q: %d, want %d", c.method, c.path, c.who, c.token, got, c.want)
		}
	}
	write(t, at("token"), "short")
	if err := s.change(a, conf, conf); err == nil {
		t.Error("a token of five bytes was taken")
	}
	if got := ask("GET", "/nothing", "client", first); got != http.StatusNotFound {
		t.Errorf("after a token that is wrong the old one gives %d", got)
	}
	write(t, at("token"), second)
	if err := s.change(a, conf, conf); err != nil {
		t.Fatal(err)
	}
	if was, is := ask("GET", "/nothing", "client", first), ask("GET", "/nothing", "client", second); was != http.StatusUnauthorized || is != http.StatusNotFound {
		t.Errorf("after a new token the old one gives %d, the new one %d", was, is)
	}
}
