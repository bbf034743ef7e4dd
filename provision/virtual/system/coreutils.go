package system

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/provision/virtual/system/shell"
)

func cleanPath(name string) string { return path.Clean(name) }

// Create implements shell.System.
func (p programs) Create(name string, how shell.CreateMode, mask uint32) (io.WriteCloser, error) {
	if name == "/dev/null" {
		return &written{put: func([]byte) error { return nil }}, nil
	}
	at := rel(name)
	i, err := p.n.tree.Stat(at)
	mode := fs.FileMode(0o666 &^ mask)
	switch {
	case err == nil && i.IsDir():
		return nil, failure("open", name, errors.New("Is a directory"))
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

// operands splits options from what follows them; -- ends the options. takes
// names the options that have a value.
func operands(argv []string, takes string) (options map[byte]string, rest []string) {
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

func has(options map[byte]string, o byte) bool { _, ok := options[o]; return ok }

func sh(ctx context.Context, c call) int {
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

// strerror puts an error of a file into the words of the C library.
func strerror(err error) string {
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

// test is test(1) with one, two or three operands.
func test(_ context.Context, c call) int {
	argv := c.Argv[1:]
	if c.name() == "[" {
		if len(argv) == 0 || argv[len(argv)-1] != "]" {
			c.say("missing ]")
			return 2
		}
		argv = argv[:len(argv)-1]
	}
	not := false
	for len(argv) > 1 && argv[0] == "!" {
		not, argv = !not, argv[1:]
	}
	yes, known := c.holds(argv)
	if !known {
		c.say("unexpected operator")
		return 2
	}
	if yes != not {
		return 0
	}
	return 1
}

func (c call) holds(argv []string) (yes, known bool) {
	switch len(argv) {
	case 0:
		return false, true
	case 1:
		return argv[0] != "", true
	case 2:
		return c.unary(argv[0], argv[1])
	case 3:
		return binary(argv[0], argv[1], argv[2])
	}
	return false, false
}

func (c call) unary(op, arg string) (yes, known bool) {
	switch op {
	case "-n":
		return arg != "", true
	case "-z":
		return arg == "", true
	case "-L", "-h":
		i, err := c.n.tree.Lstat(c.path(arg))
		return err == nil && i.Mode()&fs.ModeSymlink != 0, true
	}
	i, err := c.n.tree.Stat(c.path(arg))
	switch op {
	case "-e", "-r", "-w":
		return err == nil, true
	case "-f":
		return err == nil && i.Mode().IsRegular(), true
	case "-d":
		return err == nil && i.IsDir(), true
	case "-s":
		return err == nil && i.Size() > 0, true
	case "-x":
		return err == nil && (i.IsDir() || i.Mode()&0o111 != 0), true
	}
	return false, false
}

func binary(a, op, b string) (yes, known bool) {
	switch op {
	case "=", "==":
		return a == b, true
	case "!=":
		return a != b, true
	}
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil {
		return false, false
	}
	switch op {
	case "-eq":
		return x == y, true
	case "-ne":
		return x != y, true
	case "-lt":
		return x < y, true
	case "-le":
		return x <= y, true
	case "-gt":
		return x > y, true
	case "-ge":
		return x >= y, true
	}
	return false, false
}

func echo(_ context.Context, c call) int {
	argv := c.Argv[1:]
	end := "\n"
	if len(argv) > 0 && argv[0] == "-n" {
		argv, end = argv[1:], ""
	}
	c.print(strings.Join(argv, " ") + end)
	return 0
}

// printf knows %s, %d and %% and the usual escapes; the format is used again
// while there are arguments.
func printf(_ context.Context, c call) int {
	if len(c.Argv) < 2 {
		c.say("usage: printf format [arg ...]")
		return 2
	}
	format, args := c.Argv[1], c.Argv[2:]
	for {
		text, rest := format1(format, args)
		c.print(text)
		if len(rest) == 0 || len(rest) == len(args) {
			return 0
		}
		args = rest
	}
}

func format1(format string, args []string) (string, []string) {
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

func cat(ctx context.Context, c call) int {
	_, names := operands(c.Argv, "")
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := 0
	for _, name := range names {
		b, err := []byte(nil), error(nil)
		if name == "-" {
			b, err = c.all(ctx)
		} else {
			b, err = c.n.tree.ReadFile(c.path(name))
		}
		if err != nil {
			status = c.say(name + ": " + strerror(err))
			continue
		}
		_, _ = c.Out.Write(b)
	}
	return status
}

// lines runs head and tail.
func lines(ctx context.Context, c call) int {
	options, names := operands(c.Argv, "nc")
	n, err := 10, error(nil)
	if v, ok := options['n']; ok {
		if n, err = strconv.Atoi(strings.TrimPrefix(v, "-")); err != nil {
			return c.say("invalid number of lines: '" + v + "'")
		}
	}
	var b []byte
	if len(names) > 0 {
		b, err = c.n.tree.ReadFile(c.path(names[0]))
	} else {
		b, err = c.all(ctx)
	}
	if err != nil {
		return c.say("cannot open '" + strings.Join(names, "") + "' for reading: " + strerror(err))
	}
	all := strings.SplitAfter(string(b), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	if c.name() == "tail" {
		all = all[max(0, len(all)-n):]
	} else {
		all = all[:min(n, len(all))]
	}
	c.print(strings.Join(all, ""))
	return 0
}

// grep knows fixed strings and the pattern ".", with -q -x -F -H -s -v -c -i -n.
func grep(ctx context.Context, c call) int {
	o, names := operands(c.Argv, "e")
	pattern, given := o['e']
	if !given {
		if len(names) == 0 {
			c.say("no pattern")
			return 2
		}
		pattern, names = names[0], names[1:]
	}
	found, bad := 0, false
	look := func(name string, b []byte) {
		for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
			if len(b) == 0 || grepLine(o, pattern, line) == has(o, 'v') {
				continue
			}
			found++
			if has(o, 'q') || has(o, 'c') {
				continue
			}
			if has(o, 'H') || len(names) > 1 {
				c.print(name + ":")
			}
			if has(o, 'n') {
				c.print(itoa(i+1) + ":")
			}
			c.print(line + "\n")
		}
	}
	if len(names) == 0 {
		b, err := c.all(ctx)
		if err != nil {
			return 2
		}
		look("(standard input)", b)
	}
	for _, name := range names {
		b, err := c.n.tree.ReadFile(c.path(name))
		if err != nil {
			if bad = true; !has(o, 's') {
				c.say(name + ": " + strerror(err))
			}
			continue
		}
		look(name, b)
	}
	if has(o, 'c') {
		c.print(itoa(found) + "\n")
	}
	switch {
	case found > 0 && (!bad || has(o, 'q')):
		return 0
	case bad:
		return 2
	}
	return 1
}

func grepLine(o map[byte]string, pattern, line string) bool {
	if has(o, 'i') {
		pattern, line = strings.ToLower(pattern), strings.ToLower(line)
	}
	switch {
	case has(o, 'x'):
		return line == pattern
	case pattern == "." && !has(o, 'F'):
		return line != ""
	}
	return strings.Contains(line, pattern)
}

func sha256sum(ctx context.Context, c call) int {
	_, names := operands(c.Argv, "")
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		b, err := []byte(nil), error(nil)
		if name == "-" {
			b, err = c.all(ctx)
		} else {
			b, err = c.n.tree.ReadFile(c.path(name))
		}
		if err != nil {
			return c.say(name + ": " + strerror(err))
		}
		sum := sha256.Sum256(b)
		c.print(hex.EncodeToString(sum[:]) + "  " + name + "\n")
	}
	return 0
}

// env runs a program with further variables, or prints them.
func env(ctx context.Context, c call) int {
	vars := map[string]string{}
	for k, v := range c.Env {
		vars[k] = v
	}
	argv := c.Argv[1:]
	for len(argv) > 0 {
		name, value, ok := strings.Cut(argv[0], "=")
		if !ok {
			return c.run(ctx, argv, vars)
		}
		vars[name] = value
		argv = argv[1:]
	}
	for k, v := range vars {
		c.print(k + "=" + v + "\n")
	}
	return 0
}

// timeout runs a program for a bounded time; 124 says that it was ended.
func timeout(ctx context.Context, c call) int {
	argv := c.Argv[1:]
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") {
		skip := 1
		if argv[0] == "-k" || argv[0] == "-s" {
			skip = 2
		}
		argv = argv[min(skip, len(argv)):]
	}
	if len(argv) < 2 {
		c.say("missing operand")
		return 125
	}
	limit, err := duration(argv[0])
	if err != nil {
		c.say("invalid time interval '" + argv[0] + "'")
		return 125
	}
	bound, cancel := c.n.cfg.Clock.WithTimeout(ctx, limit)
	defer cancel()
	status := c.run(bound, argv[1:], c.Env)
	if bound.Err() != nil && ctx.Err() == nil {
		return 124
	}
	return status
}

// duration reads 5, 1.5, 10s or 2m.
func duration(s string) (time.Duration, error) {
	if s != "" && strings.IndexByte("smhd", s[len(s)-1]) < 0 {
		s += "s"
	}
	if d, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(d)
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(s)
	if d < 0 {
		err = strconv.ErrRange
	}
	return d, err
}

func sleep(ctx context.Context, c call) int {
	if len(c.Argv) < 2 {
		return c.say("missing operand")
	}
	d, err := duration(c.Argv[1])
	if err != nil {
		return c.say("invalid time interval '" + c.Argv[1] + "'")
	}
	if c.n.cfg.Clock.Sleep(ctx, d) != nil {
		return 137
	}
	return 0
}

// kill knows -9, -KILL, -s KILL and -0, for process groups.
func kill(_ context.Context, c call) int {
	argv := c.Argv[1:]
	probe := false
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") && argv[0] != "--" {
		if argv[0] == "-s" && len(argv) > 1 {
			argv = argv[1:]
		}
		probe = probe || argv[0] == "-0"
		argv = argv[1:]
	}
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	status := 0
	for _, a := range argv {
		pid, err := strconv.Atoi(strings.TrimPrefix(a, "-"))
		if err != nil || !probe && !c.n.procs.signal(pid) {
			status = c.say("(" + a + ") - No such process")
		}
	}
	return status
}
