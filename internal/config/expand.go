package config

import (
	"fmt"
	"strings"
)

// expand replaces ${NAME} and ${NAME:default} by the environment's value and $$ by $. The text of a value is expanded,
// never the file's: what a variable holds cannot add settings or lines. A message says what is wrong.
func expand(text string, env Env) (expanded, message, cure string) {
	if !strings.Contains(text, "$") {
		return text, "", ""
	}
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '$')
		if at < 0 {
			b.WriteString(text)
			return b.String(), "", ""
		}
		b.WriteString(text[:at])
		text = text[at+1:]
		switch {
		case strings.HasPrefix(text, "$"):
			b.WriteByte('$')
			text = text[1:]
		case strings.HasPrefix(text, "{"):
			end := strings.IndexByte(text, '}')
			if end < 0 {
				return "", "${ without }", "close it, as in ${NAME} or ${NAME:default}; $$ is a plain $"
			}
			val, message, cure := variable(text[1:end], env)
			if message != "" {
				return "", message, cure
			}
			b.WriteString(val)
			text = text[end+1:]
		default:
			return "", "a $ that begins neither ${NAME} nor $$", "write ${NAME} for a variable and $$ for a plain $"
		}
	}
}

// variable looks up what stands between ${ and }.
func variable(inner string, env Env) (val, message, cure string) {
	name, fallback, hasFallback := strings.Cut(inner, ":")
	if !isVariableName(name) {
		return "", fmt.Sprintf("%q is no name of a variable", name), "use letters, digits and _, as in ${WEIR_HOME}"
	}
	if env != nil {
		if val, ok := env(name); ok {
			return val, "", ""
		}
	}
	if hasFallback {
		return fallback, "", ""
	}
	return "", fmt.Sprintf("the variable %s is not set", name), fmt.Sprintf("set it before starting, or give a default: ${%s:default}", name)
}

func isVariableName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
