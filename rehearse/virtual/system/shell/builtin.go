// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// builtins are the commands that change the shell itself.
var builtins = map[string]func(s *Shell, argv []string, st Streams) int{
	":":      func(*Shell, []string, Streams) int { return 0 },
	"cd":     cd,
	"exit":   exit,
	"exec":   func(*Shell, []string, Streams) int { return 0 },
	"export": export,
	"set":    set,
	"shift":  shift,
	"trap":   trap,
	"umask":  umask,
}

// path makes a name absolute.
func (s *Shell) path(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(s.Dir, name)
}

// reason is strerror for what happens to files.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "No such file"
	case errors.Is(err, fs.ErrExist):
		return "File exists"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	}
	return err.Error()
}

func cd(s *Shell, argv []string, st Streams) int {
	to := "/root"
	if len(argv) > 1 {
		to = argv[1]
	}
	full := s.path(to)
	if !s.Sys.IsDir(full) {
		s.complain(st.Err, "cd: can't cd to "+to)
		return 2
	}
	s.Dir = full
	return 0
}

func exit(s *Shell, argv []string, _ Streams) int {
	status := s.status
	if len(argv) > 1 {
		if n, err := strconv.Atoi(argv[1]); err == nil {
			status = n & 0xff
		}
	}
	panic(ended{status})
}

func export(s *Shell, argv []string, _ Streams) int {
	env := map[string]string{}
	for k, v := range s.Env {
		env[k] = v
	}
	for _, a := range argv[1:] {
		name, value, given := strings.Cut(a, "=")
		if !given {
			value = s.vars[name]
		}
		env[name] = value
	}
	s.Env = env
	return 0
}

func set(s *Shell, argv []string, st Streams) int {
	for _, a := range argv[1:] {
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			s.complain(st.Err, "set: Illegal option "+a)
			return 2
		}
		on := a[0] == '-'
		for _, c := range a[1:] {
			switch c {
			case 'e':
				s.exitOnly = on
			case 'C':
				s.noClob = on
			case 'u', 'x', 'f':
			default:
				s.complain(st.Err, "set: Illegal option -"+string(c))
				return 2
			}
		}
	}
	return 0
}

func shift(s *Shell, argv []string, st Streams) int {
	n := 1
	if len(argv) > 1 {
		n, _ = strconv.Atoi(argv[1])
	}
	if n < 0 || n > len(s.Args) {
		s.complain(st.Err, "shift: can't shift that many")
		panic(ended{2})
	}
	s.Args = s.Args[n:]
	return 0
}

func trap(s *Shell, argv []string, st Streams) int {
	if len(argv) != 3 || argv[2] != "EXIT" && argv[2] != "0" {
		s.complain(st.Err, "trap: bad trap")
		return 2
	}
	if s.trap = argv[1]; s.trap == "-" {
		s.trap = ""
	}
	return 0
}

func umask(s *Shell, argv []string, st Streams) int {
	if len(argv) < 2 {
		_, _ = io.WriteString(st.Out, "0"+strconv.FormatUint(uint64(s.mask), 8)+"\n")
		return 0
	}
	n, err := strconv.ParseUint(argv[1], 8, 32)
	if err != nil {
		s.complain(st.Err, "umask: Illegal mode: "+argv[1])
		return 2
	}
	s.mask = uint32(n)
	return 0
}
