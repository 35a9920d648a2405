package event

// AttrKind is the CloudEvents type of an attribute's value, as far as JSON tells it apart.
type AttrKind uint8

const (
	AttrString  AttrKind = iota // the value's bytes, unescaped
	AttrInteger                 // decimal digits with an optional minus
	AttrBoolean                 // true or false
)

// Attrs holds the attributes that have no field of their own (subject, datacontenttype, dataschema and extensions
// such as partitionkey) in the order in which they came, encoded flat: kind, name, value, each of the two behind its
// length.
type Attrs []byte

// AppendAttr adds one attribute at the end of a.
func (a Attrs) AppendAttr(kind AttrKind, name, value []byte) Attrs {
	return appendBytes(appendBytes(append(a, byte(kind)), name), value)
}

// Next splits the first attribute off. ok is false at the end and where the bytes are corrupt.
func (a Attrs) Next() (kind AttrKind, name, value []byte, rest Attrs, ok bool) {
	if len(a) == 0 || a[0] > byte(AttrBoolean) {
		return 0, nil, nil, nil, false
	}
	name, tail, ok := cutBytes(a[1:], true)
	value, tail, ok = cutBytes(tail, ok)
	return AttrKind(a[0]), name, value, tail, ok
}

// Get returns the value of the attribute called name. ok is false where there is none.
func (a Attrs) Get(name string) (kind AttrKind, value []byte, ok bool) {
	for {
		k, n, v, rest, more := a.Next()
		if !more {
			return 0, nil, false
		}
		if string(n) == name {
			return k, v, true
		}
		a = rest
	}
}
