package config

import (
	"net"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// listen reads an address, or an address with what protects it.
func (r *reader) listen(l *Listen, n *yaml.Node) {
	l.Line = n.Line
	if n.Kind == yaml.ScalarNode {
		l.Address = n.Value
	} else {
		r.fields(n, "listen", map[string]func(*yaml.Node){
			"address":    r.text(&l.Address, "address"),
			"tls":        r.tls(&l.TLS),
			"token_file": r.text(&l.TokenFile, "token_file"),
		})
	}
	if l.Unix() || l.Address == "" {
		return
	}
	host, port, err := net.SplitHostPort(l.Address)
	if p, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || p == 0 && port != "0" {
		r.wrong(n.Line, "listen: %q is neither HOST:PORT nor the path of a socket", short(l.Address))
		return
	}
	if local(host) {
		return
	}
	if l.TLS.CA == "" && l.TokenFile == "" || l.TLS.CA != "" && l.TLS.Cert == "" {
		r.wrong(n.Line, "listen: %[1]q can be reached from other machines: listen on 127.0.0.1 or on a socket (its path), or admit only clients with a certificate, listen: {address: '%[1]s', tls: {ca: …, cert: …, key: …}}, or with a token, token_file: …", short(l.Address))
	}
}

// Open reports whether other machines reach the address.
func (l Listen) Open() bool {
	host, _, err := net.SplitHostPort(l.Address)
	return err == nil && !l.Unix() && !local(host)
}

// local reports whether only this machine reaches a host. A name may come to mean another address,
// except for localhost.
func local(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
