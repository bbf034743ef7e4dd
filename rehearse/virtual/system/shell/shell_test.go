// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// few is a system with files in memory and a handful of programs.
type few struct{ files map[string]string }

type file struct {
	bytes.Buffer
	f    *few
	name string
}

func (f *file) Close() error { f.f.files[f.name] = f.String(); return nil }

func (f *few) Open(name string) ([]byte, error) {
	if name == "/dev/null" {
		return nil, nil
	}
	if s, ok := f.files[name]; ok {
		return []byte(s), nil
	}
	return nil, fs.ErrNotExist
}

func (f *few) Create(name string, how CreateMode, _ uint32) (io.WriteCloser, error) {
	out := &file{f: f, name: name}
	if _, there := f.files[name]; there && how == Exclusive {
		return nil, fs.ErrExist
	}
	if how == Append {
		out.WriteString(f.files[name])
	}
	return out, nil
}

func (f *few) IsDir(name string) bool { return name == "/" || name == "/tmp" }

func (f *few) Run(_ context.Context, c Command) int {
	switch c.Argv[0] {
	case "true":
	case "false":
		return 1
	case "echo":
		fmt.Fprintln(c.Out, strings.Join(c.Argv[1:], " "))
	case "printf":
		if c.Argv[1] == `[%s]\n` {
			for _, a := range c.Argv[2:] {
				fmt.Fprintf(c.Out, "[%s]\n", a)
			}
			return 0
		}
		fmt.Fprint(c.Out, strings.ReplaceAll(c.Argv[1], `\n`, "\n"))
	case "cat":
		if len(c.Argv) > 1 {
			b, err := f.Open(c.Argv[1])
			if err != nil {
				return 1
			}
			_, _ = c.Out.Write(b)
			return 0
		}
		_, _ = io.Copy(c.Out, c.In)
	case "sh":
		return 3
	default:
		fmt.Fprintf(c.Err, "sh: 1: %s: not found\n", c.Argv[0])
		return 127
	}
	return 0
}

func runOn(t testing.TB, src, in string, args ...string) (string, int) {
	t.Helper()
	script, err := Parse(src)
	if err != nil {
		return err.Error(), 2
	}
	var out bytes.Buffer
	s := Shell{Sys: &few{files: map[string]string{}}, PID: 4711, Name: "sh", Args: args}
	status := s.Run(t.Context(), script, Streams{strings.NewReader(in), &out, io.Discard})
	return out.String(), status
}

// TestUnsupported: what the shell does not run is an error that names it, before
// anything of the script has run.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`echo a; sleep 1 &`:              "1:9: a command in the background is not known",
		`while true; do echo a; done`:    "1:1: WhileClause is not known",
		`case a in a) echo a;; esac`:     "1:1: CaseClause is not known",
		`f() { echo a; }; f`:             "1:1: FuncDecl is not known",
		"cat <<E\na\nE":                  "1:5: redirection << is not known",
		`echo a >|b`:                     "1:8: redirection >| is not known",
		`for i do echo a; done`:          "1:5: for without in is not known",
		`cd ~nobody`:                     "1:4: ~ is not known",
		`echo {a,b}`:                     "1:6: a word with {,} is not known",
		`x=$(while true; do echo; done)`: "1:5: WhileClause is not known",
		strings.Repeat("(", 1<<20):       "script is too long",
	} {
		if _, err := Parse(src); err == nil || err.Error() != "Syntax error: "+want {
			t.Errorf("%.40s: %v, want %s", src, err, want)
		}
	}
}

// What scripts do, held against the shell of this computer where there is one.
func TestPeerAgainstTheRealShell(t *testing.T) {
	t.Parallel()
	args := []string{"one", "two words", ""}
	peertest.Need(t, "dash")
	for _, src := range []string{
		`printf '[%s]\n' "$@"`,
		`printf '[%s]\n' $2 "$2" x"$1"y "$#" '$1' "\$1" a\ b`,
		`a=1; b="$a 2"; printf '[%s]\n' "$b" $b ${c:-none} "${1:-x}" "${3:-empty}"`,
		`if false; then echo a; elif true; then echo b; else echo c; fi`,
		`if false; then echo a; fi; echo $?`,
		`true && echo yes || echo no; false && echo yes || echo no; ! false && echo not`,
		`set -e; if false; then :; fi; false || echo went on; ! true; echo still; false; echo never`,
		`set -e; x=$(false); echo never`,
		`x=$(echo a; echo b; echo); printf '[%s]\n' "$x" $x`,
		`trap 'echo bye' EXIT; echo hello; exit 3`,
		`trap 'echo bye' EXIT; exec echo gone`,
		`for i in 1 $2 "$2"; do printf '[%s]\n' "$i"; done; echo $i`,
		`(a=1; exit 4); echo $? $a`,
		`{ echo a; echo b >&2; } 2>/dev/null | cat`,
		`echo a | cat | cat; cat`,
		`shift; printf '[%s]\n' "$@"; shift 2; printf '[%s]\n' "$#" "$@"`,
		`exit 300`,
		`nothere 2>/dev/null; echo $?`,
		`cd /nowhere 2>/dev/null && echo in; cd /tmp && echo in`,
		"echo a # comment\n\n\necho b;\n  echo c \\\n d",
		`echo 'a'"b"c"d e"'f'`,
		`echo "a $(printf '[%s]\n' "$2") b"`,
		`false; echo $?; true; echo $?`,
		`exec false`,
		`a='1 2 '; b=' 3'; printf '[%s]\n' ${a}x x$b $a$b "$a$b" ''$a`,
		`a=name.tar.gz; echo ${a%.gz} ${a##*.} ${#a} $((${#a} * 2 - 1)) ${b:=new} $b ${b+set}`,
		"echo `echo a` \"`echo 'b  c'`\"",
		`for i in a b; do for j in 1 2; do printf '[%s]\n' $i$j; done; done; echo $j`,
		`set -e; for i in 1 2; do [ $i = 2 ] || true; done; { false; } || echo no; (false); echo never`,
		`echo '*' * | cat >/dev/null; echo \~ '{a,b}'`,
		`A=1 echo $A; A=2; echo $A; export A; >/dev/null; echo $?`,
		`if`, `echo )`, `echo 'open`, `fi`, `&& echo`,
	} {
		got, status := runOn(t, src, "input\n", args...)
		cmd := exec.CommandContext(t.Context(), "dash", append([]string{"-c", src, "sh"}, args...)...)
		cmd.Stdin = strings.NewReader("input\n")
		want, _ := cmd.Output() // many end with another status
		wantStatus := cmd.ProcessState.ExitCode()
		if wantStatus == 2 && status == 2 {
			continue // words of syntax errors differ
		}
		if got != string(want) || status != wantStatus {
			t.Errorf("%s\ngot  %q, status %d\nwant %q, status %d", src, got, status, want, wantStatus)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	f := &few{files: map[string]string{"/etc/a": "1\n"}}
	run := func(src string) (string, int) {
		script, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s := Shell{Sys: f, PID: 9, Name: "sh"}
		return out.String(), s.Run(t.Context(), script, Streams{strings.NewReader("fed"), &out, &out})
	}
	for _, c := range []struct {
		src    string
		status int
		file   string
		want   string
	}{
		{`cat >/etc/b`, 0, "/etc/b", "fed"},
		{`echo 2 >>/etc/a`, 0, "/etc/a", "1\n2\n"},
		{`set -C; echo 3 >/etc/a`, 2, "/etc/a", "1\n2\n"},
		{`cat </etc/a >/etc/c`, 0, "/etc/c", "1\n2\n"},
		{`cd /tmp; echo $$ >pid`, 0, "/tmp/pid", "9\n"},
		{`cat </etc/none`, 2, "/etc/none", ""},
	} {
		if _, status := run(c.src); status != c.status || f.files[c.file] != c.want {
			t.Errorf("%s: status %d, %s is %q", c.src, status, c.file, f.files[c.file])
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	script, err := Parse("trap 'echo never' EXIT; echo a; echo b")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := Shell{Sys: &few{}, Name: "sh"}
	if status := s.Run(ctx, script, Streams{strings.NewReader(""), &out, &out}); status != 137 || out.String() != "" {
		t.Errorf("status %d, %q", status, out.String())
	}
}

func FuzzRun(f *testing.F) {
	for _, s := range []string{`set -e; d=$(dirname -- "$1"); cat >"$1.x" && exit 3`, `if [ -e a ]; then :; fi`, `$($($(`, `"${a:-b}`, "a=$(b) c", `for i in 1; do echo $i; done | cat`, `${}`, `${a`, `$`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 4096 {
			return
		}
		runOn(t, src, "x", "a", "b")
	})
}
