package jsonscan

import "strconv"

const (
	// exponentDigitsMax bounds the digits of an exponent, so that it can be added to in 64 bits.
	exponentDigitsMax = 17
	// paddingZerosMax is how many zeros are written behind the digits of a large number before it takes an exponent.
	paddingZerosMax = 20
	// leadingZerosMax is how many zeros are written between the point and the digits of a small number.
	leadingZerosMax = 5
)

// decimal is a number taken apart: 0.DIGITS * 10^point, where DIGITS are head and tail one behind the other, without
// zeros at either end.
type decimal struct {
	head, tail []byte
	point      int64
	negative   bool
}

func (d *decimal) digits() int { return len(d.head) + len(d.tail) }

// AppendCanonicalNumber appends a valid JSON number in the one text that all its spellings share: 1.0, 1e0 and 10e-1
// are 1, -0 is 0, 0.10 is 0.1. The number is exact whatever its length; nothing is rounded to a float.
//
// The form is that of ECMAScript and RFC 8785: an exponent below 1e-6, and (a deviation, so that long integers stay as
// they were sent) where more than 20 zeros would have to be written behind the last digit: 1e+21, 1.5e-7. ok is false
// where an exponent has more than 17 digits: such a number has no canonical text.
func AppendCanonicalNumber(dst, number []byte) (out []byte, ok bool) {
	if plainInteger(number) {
		return append(dst, number...), true
	}
	d, ok := takeApart(number)
	if !ok {
		return dst, false
	}
	n := int64(d.digits())
	if n == 0 {
		return append(dst, '0'), true
	}
	if d.negative {
		dst = append(dst, '-')
	}
	switch {
	case d.point > 0 && d.point-n <= paddingZerosMax:
		return appendPlain(dst, &d), true
	case d.point <= 0 && d.point >= -leadingZerosMax:
		dst = appendZeros(append(dst, "0."...), -d.point)
		return append(append(dst, d.head...), d.tail...), true
	}
	return appendExponent(dst, &d), true
}

// plainInteger tells the common case: an integer that is its own canonical text.
func plainInteger(number []byte) bool {
	if len(number) == 0 || len(number) > paddingZerosMax || number[0] == '-' && len(number) == 2 && number[1] == '0' {
		return false
	}
	for i, c := range number {
		if c-'0' > 9 && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

func takeApart(number []byte) (d decimal, ok bool) {
	i := 0
	if i < len(number) && number[i] == '-' {
		d.negative, i = true, 1
	}
	end := skipDigits(number, i)
	d.head, i = number[i:end], end
	if i < len(number) && number[i] == '.' {
		end = skipDigits(number, i+1)
		d.tail, i = number[i+1:end], end
	}
	d.point = int64(len(d.head))
	if i < len(number) {
		exponent, ok := smallExponent(number[i+1:])
		if !ok {
			return d, false
		}
		d.point += exponent
	}
	d.trim()
	return d, true
}

// trim takes the zeros off both ends of the digits.
func (d *decimal) trim() {
	for len(d.head) > 0 && d.head[0] == '0' {
		d.head = d.head[1:]
		d.point--
	}
	for len(d.head) == 0 && len(d.tail) > 0 && d.tail[0] == '0' {
		d.tail = d.tail[1:]
		d.point--
	}
	for len(d.tail) > 0 && d.tail[len(d.tail)-1] == '0' {
		d.tail = d.tail[:len(d.tail)-1]
	}
	for len(d.tail) == 0 && len(d.head) > 0 && d.head[len(d.head)-1] == '0' {
		d.head = d.head[:len(d.head)-1]
	}
}

func smallExponent(text []byte) (v int64, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	for len(text) > 1 && text[0] == '0' {
		text = text[1:]
	}
	if len(text) > exponentDigitsMax {
		return 0, false
	}
	for _, c := range text {
		v = v*10 + int64(c-'0')
	}
	if negative {
		v = -v
	}
	return v, true
}

func (d *decimal) at(i int) byte {
	if i < len(d.head) {
		return d.head[i]
	}
	return d.tail[i-len(d.head)]
}

func appendPlain(dst []byte, d *decimal) []byte {
	n := d.digits()
	for i := range n {
		if int64(i) == d.point {
			dst = append(dst, '.')
		}
		dst = append(dst, d.at(i))
	}
	return appendZeros(dst, d.point-int64(n))
}

func appendExponent(dst []byte, d *decimal) []byte {
	dst = append(dst, d.at(0))
	for i := 1; i < d.digits(); i++ {
		if i == 1 {
			dst = append(dst, '.')
		}
		dst = append(dst, d.at(i))
	}
	dst = append(dst, 'e')
	exponent := d.point - 1
	if exponent > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, exponent, 10)
}

func appendZeros(dst []byte, n int64) []byte {
	for ; n > 0; n-- {
		dst = append(dst, '0')
	}
	return dst
}
