package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard keeps web pages out. A node on loopback trusts whoever reaches it, and a browser reaches it on behalf of every page it
// shows:
//
//   - a page of another site may send a form or a simple POST without asking. Browsers say where such a request comes
//     from (Sec-Fetch-Site, Origin), and net/http knows how to read that;
//   - a page whose name was made to resolve to 127.0.0.1 (DNS rebinding) is, to the browser, the same site as the node.
//     Such a request carries the page's name as Host. A name that an attacker can register has a dot in it and is no
//     address, so these are refused where the connection came in over loopback.
//
// Programs other than browsers send none of the former headers and, unless told otherwise, an address or localhost as Host.
type guard struct {
	crossOrigin *http.CrossOriginProtection
	hosts       []string // names that are not foreign
}

func newGuard(hosts []string) *guard {
	return &guard{crossOrigin: http.NewCrossOriginProtection(), hosts: hosts}
}

// check returns what to refuse r with, or nil.
func (g *guard) check(r *http.Request) *failure {
	if err := g.crossOrigin.Check(r); err != nil {
		return &failure{status: http.StatusForbidden, code: codeCrossOrigin, field: "Origin", value: r.Header.Get("Origin"),
			message: "a page of another site may not change anything here", hint: "send the request from a program, or from the node's own page"}
	}
	if overLoopback(r) && foreign(hostName(r.Host)) && !slices.Contains(g.hosts, hostName(r.Host)) {
		return &failure{status: http.StatusForbidden, code: codeForeignHost, field: "Host", value: r.Host,
			message: "this node listens on loopback and does not answer to that name",
			hint:    "address it as localhost or 127.0.0.1; a proxy on this machine sets Host so"}
	}
	return nil
}

func overLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	addr, err := netip.ParseAddrPort(local.String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// hostName cuts the port off a Host header.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// foreign says that name is one which somebody else could have pointed here.
func foreign(name string) bool {
	if !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") {
		return false
	}
	_, err := netip.ParseAddr(name)
	return err != nil
}
