package client

import "testing"

func TestRefusalNamesTheValue(t *testing.T) {
	for _, c := range []struct {
		refusal APIError
		want    string
	}{
		{APIError{Code: "unknown_counter", Message: "there is no such counter", Field: "counter", Value: "sene", Hint: "did you mean seen?"},
			"there is no such counter: got counter \"sene\" (unknown_counter)\n  did you mean seen?"},
		{APIError{Code: "bad_time", Message: "cannot take time: got 1", Field: "time", Value: "1"}, "cannot take time: got 1 (bad_time)"},
		{APIError{Code: "internal", Message: "the node failed"}, "the node failed (internal)"},
	} {
		if got := c.refusal.Error(); got != c.want {
			t.Errorf("got %q; want %q", got, c.want)
		}
	}
}
