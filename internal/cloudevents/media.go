package cloudevents

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

type bodyKind uint8

const (
	kindBatch bodyKind = iota
	kindStructured
	kindLines
	kindBinary
)

const (
	headerPrefix    = "Ce-" // as http.Header spells ce-*
	headerMedia     = "Content-Type"
	mediaBatch      = "application/cloudevents-batch+json"
	mediaStructured = "application/cloudevents+json"
	mediaLines      = "application/x-ndjson"
	mediaFamily     = "application/cloudevents" // what begins so is CloudEvents of some format
)

// kindOf tells what a body is. A CloudEvents media type says so itself; beside any other one, the headers that every
// event needs say that the body is the payload of one.
func kindOf(header http.Header) (bodyKind, error) {
	text := header.Get(headerMedia)
	media, params, err := mime.ParseMediaType(text)
	binary := len(header["Ce-Id"]) > 0 || len(header["Ce-Type"]) > 0 || len(header["Ce-Specversion"]) > 0
	switch {
	case binary && !strings.HasPrefix(media, mediaFamily):
		return kindBinary, nil
	case err != nil:
		return 0, unsupported(text, fmt.Sprintf("got no media type in %q", cut([]byte(text))))
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return 0, unsupported(text, fmt.Sprintf("got charset %q; want utf-8", cut([]byte(charset))))
	}
	switch media {
	case mediaBatch:
		return kindBatch, nil
	case mediaStructured:
		return kindStructured, nil
	case mediaLines:
		return kindLines, nil
	}
	return 0, unsupported(text, fmt.Sprintf("got media type %q", cut([]byte(media))))
}

func unsupported(value, what string) error {
	return &Problem{Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMedia, Field: headerMedia, Value: cut([]byte(value)),
		Message: "cannot read the body: " + what,
		Hint:    "send " + mediaBatch + ", " + mediaStructured + " or " + mediaLines + ", or any other type with the headers ce-id and ce-type"}
}

// jsonMedia tells whether a media type means JSON: application/json, text/json and whatever ends in +json.
func jsonMedia(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// skipMark leaves off the byte order mark that some editors and shells write before UTF-8.
func skipMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) }
