// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore ST1005 these are the words of the programs that are simulated

package system

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/system/shell"
)

func cleanPath(name string) string { return path.Clean(name) }

// Create implements shell.System.
func (p programs) Create(name string, how shell.CreateMode, mask uint32) (io.WriteCloser, error) {
	if name == "/dev/null" {
		return &written{put: func([]byte) error { return nil }}, nil
	}
	at := relativeName(name)
	i, err := p.n.tree.Stat(at)
	mode := fs.FileMode(0o666 &^ mask)
	switch {
	case err == nil && i.IsDir():
		return nil, pathError("open", name, errors.New("Is a directory"))
	case err == nil && how == shell.Exclusive:
		return nil, fs.ErrExist
	case err == nil:
		mode = i.Mode().Perm()
		if at, err = p.n.tree.resolve(at, true); err != nil { // it is written through links
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if _, err := p.n.tree.place("open", at); err != nil {
		return nil, fs.ErrNotExist
	}
	w := &written{put: func(b []byte) error { return p.n.tree.write(at, bytes.Clone(b), mode) }}
	if how == shell.Append {
		if old, err := p.n.tree.ReadFile(at); err == nil {
			w.Write(old)
		}
	}
	// The file is there from the start, empty, as one that was opened for writing.
	if how != shell.Append {
		if err := p.n.tree.write(at, nil, mode); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// splitOperands splits options from what follows them; -- ends the options. takes
// names the options that have a value.
func splitOperands(argv []string, takes string) (options map[byte]string, rest []string) {
	options = map[byte]string{}
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		if a == "--" {
			return options, append(rest, argv[i+1:]...)
		}
		if len(a) < 2 || a[0] != '-' || a[1] == '-' {
			rest = append(rest, a)
			continue
		}
		for j := 1; j < len(a); j++ {
			if strings.IndexByte(takes, a[j]) < 0 {
				options[a[j]] = ""
				continue
			}
			value := a[j+1:]
			if value == "" && i+1 < len(argv) {
				i++
				value = argv[i]
			}
			options[a[j]] = value
			break
		}
	}
	return options, rest
}

func hasOption(options map[byte]string, o byte) bool { _, ok := options[o]; return ok }

func runShell(ctx context.Context, c call) int {
	argv := c.Argv[1:]
	if len(argv) >= 2 && argv[0] == "-c" {
		name, args := c.name(), argv[2:]
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
		return c.n.script(ctx, c.pid, argv[1], name, args, c.Dir, c.Env, c.Streams)
	}
	src, name, args := []byte(nil), "sh", argv
	var err error
	if len(argv) > 0 && argv[0] != "-s" {
		name, args = argv[0], argv[1:]
		if src, err = c.n.tree.ReadFile(c.path(name)); err != nil {
			_, _ = io.WriteString(c.Err, "sh: 0: cannot open "+name+": No such file\n")
			return 2
		}
	} else if src, err = c.all(ctx); err != nil {
		return 137
	}
	return c.n.script(ctx, c.pid, string(src), name, args, c.Dir, c.Env, shell.Streams{In: strings.NewReader(""), Out: c.Out, Err: c.Err})
}

// describeErrno puts an error of a file into the words of the C library.
func describeErrno(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrExist):
		return "File exists"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	text := err.Error()
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

func runEcho(_ context.Context, c call) int {
	argv := c.Argv[1:]
	end := "\n"
	if len(argv) > 0 && argv[0] == "-n" {
		argv, end = argv[1:], ""
	}
	c.print(strings.Join(argv, " ") + end)
	return 0
}

// runPrintf knows %s, %d and %% and the usual escapes; the format is used again
// while there are arguments.
func runPrintf(_ context.Context, c call) int {
	if len(c.Argv) < 2 {
		c.fail("usage: printf format [arg ...]")
		return 2
	}
	format, args := c.Argv[1], c.Argv[2:]
	for {
		text, rest := formatOnce(format, args)
		c.print(text)
		if len(rest) == 0 || len(rest) == len(args) {
			return 0
		}
		args = rest
	}
}

func formatOnce(format string, args []string) (string, []string) {
	var b strings.Builder
	next := func() string {
		if len(args) == 0 {
			return ""
		}
		a := args[0]
		args = args[1:]
		return a
	}
	for i := 0; i < len(format); i++ {
		two := ""
		if i+1 < len(format) {
			two = format[i : i+2]
		}
		switch two {
		case "%s":
			b.WriteString(next())
		case "%d":
			n, _ := strconv.Atoi(next())
			b.WriteString(strconv.Itoa(n))
		case "%%":
			b.WriteByte('%')
		case `\n`:
			b.WriteByte('\n')
		case `\t`:
			b.WriteByte('\t')
		case `\\`:
			b.WriteByte('\\')
		default:
			b.WriteByte(format[i])
			continue
		}
		i++
	}
	return b.String(), args
}
