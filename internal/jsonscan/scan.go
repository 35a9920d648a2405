// Package jsonscan reads JSON where it lies: it validates bytes and hands out slices of them, and allocates nothing.
package jsonscan

// DepthMax is how deep arrays and objects may nest unless the caller says otherwise.
const DepthMax = 128

// Value validates the JSON value at the head of src and returns its bytes and what follows.
func Value(src []byte, depthMax int) (value, tail []byte, err error) { return nil, src, nil }

// AppendString appends s as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
func AppendString(dst, s []byte) []byte { return dst }

// AppendCanonicalNumber appends a valid JSON number in its one canonical text: 1.0 and 1e0 are 1.
func AppendCanonicalNumber(dst, number []byte) []byte { return dst }
