// Package slide is the algebra of sliding counters: values that join, and what they answer.
package slide
