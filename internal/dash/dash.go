// Package dash is the live page of a node: one HTML document that holds its style and its script, and asks the API that
// everybody else uses.
//
// The page needs no build, no other resource and no other site: a node on a ship shows it as well as one in a data centre. Its
// Content-Security-Policy allows its own script and style, by their hashes, and requests to the node, and nothing else. What
// comes out of events (names, keys, values) reaches the document as text only.
package dash

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
)

//go:embed page.html
var pageHTML []byte

//go:embed page.css
var pageCSS []byte

//go:embed page.js
var pageJS []byte

// The places in page.html where the style and the script belong.
const (
	styleMark  = "/*page.css*/"
	scriptMark = "/*page.js*/"
)

// New returns the handler of the page. It answers every path: mount it where the page belongs.
func New() http.Handler {
	page := bytes.Replace(pageHTML, []byte(styleMark), pageCSS, 1)
	page = bytes.Replace(page, []byte(scriptMark), pageJS, 1)
	policy := "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
		"; style-src '" + source(pageCSS) + "'; script-src '" + source(pageJS) + "'"
	sum := sha256.Sum256(page)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Length", strconv.Itoa(len(page)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(page) // a client that is gone needs no page
		}
	})
}

// source names inline content in a policy: browsers run it only if it still has this hash.
func source(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
