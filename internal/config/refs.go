package config

import "errors"

func checkPath(s string) error {
	if s == "" {
		return errors.New("empty path")
	}
	return nil
}

func checkWhere(s string) error {
	if s == "" {
		return errors.New("empty condition")
	}
	return nil
}
