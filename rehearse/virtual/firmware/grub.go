// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
)

// agentGRUB is how GRUB calls itself.
const agentGRUB = "GRUB 2.12-9+deb13u1"

// signedBy are what differs between architectures: the GRUB that shim loads, which lies beside
// it (shim.c, DEFAULT_LOADER), and GRUB's own name of the platform.
var signedBy = map[inventory.Arch]struct{ grub, platform string }{
	inventory.AMD64: {"grubx64.efi", "x86_64-efi"},
	inventory.ARM64: {"grubaa64.efi", "arm64-efi"},
}

// startTime is how long shim and GRUB take each until they ask for a file: signatures are
// verified, and the network is set up.
const startTime = time.Second

// shim loads GRUB from where shim itself came from, and GRUB its configuration from the
// same server.
func (b *Board) shim(ctx context.Context, mac addr.MAC, l lease, how inventory.Firmware) (result, error) {
	fetch := func(file string) error {
		next := l
		next.file = path.Join(path.Dir(l.file), file)
		if how == inventory.BootUEFIHTTP {
			next.file = l.file[:strings.LastIndexByte(l.file, '/')+1] + file
		}
		b.printf("Fetching Netboot Image %s", file)
		return b.loader(ctx, next, how)
	}
	if err := b.cfg.Clock.Sleep(ctx, startTime); err != nil {
		return result{}, err
	}
	if r, done := b.checkMOK(ctx, func() error { return fetch(mokFile) }); done {
		return r, nil
	}
	if err := fetch(signedBy[b.cfg.Arch].grub); err != nil {
		return result{}, nil
	}
	if err := b.cfg.Clock.Sleep(ctx, startTime); err != nil {
		return result{}, err
	}
	g := &grub{b: b, mac: mac, address: l.address, net: b.cfg.Net(l.address.Addr()), vars: map[string]string{}}
	text, err := g.firstConfig(ctx, l, how)
	if err != nil {
		b.complain(ctx, "error: %v", err)
		return result{}, nil
	}
	return g.run(ctx, text)
}

// firstConfig reads GRUB's configuration by the protocol that GRUB itself came by.
func (g *grub) firstConfig(ctx context.Context, l lease, how inventory.Firmware) (text string, err error) {
	// Where grubnet looks for its configuration, below what it was loaded from.
	for _, name := range []string{"/grub/" + signedBy[g.b.cfg.Arch].platform + "/grub.cfg", "/grub/grub.cfg"} {
		if how == inventory.BootUEFIHTTP {
			_, host, e := parseTarget(l.file)
			if err = e; err == nil {
				text, err = g.config(ctx, "http://"+host+name)
			}
		} else {
			var b limited
			n := int64(0)
			n, err = readFile(ctx, g.net, l.address.Addr(), l.server, name, 1024, 1, false, &b)
			if text = b.b.String(); err == nil && int64(len(text)) != n {
				err = fmt.Errorf("%s has %d bytes, which is no configuration", name, n)
			}
		}
		if err == nil {
			return text, nil
		}
	}
	return "", err
}

// config reads a configuration.
func (g *grub) config(ctx context.Context, url string) (string, error) {
	var b limited
	_, _, err := fetchURL(ctx, g.net, http.MethodGet, url, agentGRUB, &b)
	return b.b.String(), err
}

// grub runs a configuration: what provision/netboot/grub writes of GRUB's shell.
type grub struct {
	b       *Board
	mac     addr.MAC
	address netip.Prefix
	net     network.Network

	vars   map[string]string
	kernel *Kernel
	initrd tail
	steps  int

	done   bool // exit, or something booted
	result result
}

// run runs a configuration. One that comes to its end leaves GRUB at its prompt, where
// the node waits for somebody.
func (g *grub) run(ctx context.Context, text string) (result, error) {
	if err := g.lines(ctx, strings.Split(text, "\n")); err != nil {
		return result{}, err
	}
	if !g.done {
		g.b.printf("grub>")
		<-ctx.Done()
	}
	return g.result, nil
}

// lines runs lines with their blocks. A command that fails says so, and the next one runs.
func (g *grub) lines(ctx context.Context, all []string) error {
	for i := 0; i < len(all) && !g.done; i++ {
		if g.steps++; g.steps > maxSteps {
			return errors.New("the configuration never ends")
		}
		words, err := grubWords(all[i], g.vars)
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		end := i
		if words[0] == "for" || words[0] == "if" {
			if end, err = blockEnd(all, i); err != nil {
				return err
			}
		}
		switch words[0] {
		case "for":
			err = g.loop(ctx, words, all[i+1:end])
		case "if":
			if g.command(ctx, words[1:len(words)-1]) == nil && !g.done {
				err = g.lines(ctx, all[i+1:end])
			}
		default:
			_ = g.command(ctx, words) // it has said why
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		i = end
	}
	return nil
}

// loop is for NAME in WORDS; do.
func (g *grub) loop(ctx context.Context, words, body []string) error {
	if len(words) < 4 || words[2] != "in" || words[len(words)-1] != "do" {
		return fmt.Errorf("syntax error: %s", strings.Join(words, " "))
	}
	for _, value := range words[3 : len(words)-1] {
		g.vars[words[1]] = value
		if err := g.lines(ctx, body); err != nil || g.done {
			return err
		}
	}
	return nil
}

// blockEnd is the line that ends the block which a line opens.
func blockEnd(all []string, from int) (int, error) {
	depth := 0
	for i := from; i < len(all); i++ {
		word, _, _ := strings.Cut(strings.TrimSpace(all[i]), " ")
		switch word {
		case "for", "if":
			depth++
		case "done", "fi":
			if depth--; depth == 0 {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("line %d opens a block that never ends", from+1)
}

// grubWords splits a line as GRUB's shell does: at spaces outside of quotes, with $NAME
// expanded outside of '. A ; before do or then only ends the command.
func grubWords(line string, vars map[string]string) ([]string, error) {
	s := splitter{line: line, vars: vars}
	for s.at < len(line) {
		c := line[s.at]
		switch {
		case c == '#' && !s.open:
			return s.words, nil
		case c == '\'' || c == '"':
			if err := s.quoted(c); err != nil {
				return nil, err
			}
		case c == ' ' || c == '\t' || c == ';':
			s.end()
			s.at++
		default:
			s.next()
		}
	}
	s.end()
	return s.words, nil
}

// splitter is a line that is split.
type splitter struct {
	line  string
	at    int
	vars  map[string]string
	word  strings.Builder
	open  bool // word has begun; it may be empty
	words []string
}

// end ends a word.
func (s *splitter) end() {
	if s.open {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.open = false
}

// next takes one character, or a variable.
func (s *splitter) next() {
	s.open = true
	c := s.line[s.at]
	s.at++
	if c != '$' {
		s.word.WriteByte(c)
		return
	}
	from := s.at
	for s.at < len(s.line) && isName(s.line[s.at]) {
		s.at++
	}
	s.word.WriteString(s.vars[s.line[from:s.at]])
}

// quoted takes what is between quotes: of ' as it is.
func (s *splitter) quoted(quote byte) error {
	s.open = true
	for s.at++; s.at < len(s.line); {
		switch c := s.line[s.at]; {
		case c == quote:
			s.at++
			return nil
		case quote == '"':
			s.next()
		default:
			s.word.WriteByte(c)
			s.at++
		}
	}
	return errors.New("a quote never ends")
}

// isName accepts characters of names of variables.
func isName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// command runs one command. The loaders of disks are not simulated: where they are looked
// for, GRUB finds none, and the firmware starts the disk.
func (g *grub) command(ctx context.Context, w []string) error {
	err := errUsage
	if len(w) > 0 {
		err = g.perform(ctx, w[0], w[1:])
	}
	if err != nil {
		g.b.complain(ctx, "error: %v.", err)
	}
	return err
}

func (g *grub) perform(ctx context.Context, name string, args []string) error {
	switch name {
	case "echo":
		g.b.printf("%s", strings.Join(args, " "))
		return nil
	case "exit":
		g.done = true
		return nil
	case "boot":
		return g.boot(ctx)
	case "search", "chainloader":
		return errors.New("no such device")
	}
	if len(args) == 0 {
		return errUsage
	}
	switch name {
	case "sleep":
		n, err := strconv.ParseUint(args[0], 10, 16)
		if err != nil {
			return errUsage
		}
		return g.b.cfg.Clock.Sleep(ctx, time.Duration(n)*time.Second)
	case "configfile":
		return g.configfile(ctx, args[0])
	case "linux":
		return g.loadKernel(ctx, args[0], args[1:])
	case "initrd":
		return g.loadInitrds(ctx, args)
	}
	return fmt.Errorf("can't find command `%s'", name)
}

// grubURL is the URL of a file on a device of HTTP: (http,10.0.0.1:80)/name.
func grubURL(file string) (string, error) {
	rest, ok := strings.CutPrefix(file, "(http,")
	host, name, closed := strings.Cut(rest, ")")
	if !ok || !closed {
		return "", fmt.Errorf("no server is specified: %s", file)
	}
	return "http://" + host + name, nil
}

// configfile runs another configuration in the place of this one. One that is not to be
// had is an error: the command fails.
func (g *grub) configfile(ctx context.Context, file string) error {
	url, err := grubURL(file)
	if err != nil {
		return err
	}
	text, err := g.config(ctx, url)
	if err != nil {
		return err
	}
	return g.lines(ctx, strings.Split(text, "\n"))
}

func (g *grub) loadKernel(ctx context.Context, file string, args []string) error {
	url, err := grubURL(file)
	if err != nil {
		return err
	}
	var h head
	if _, _, err := fetchURL(ctx, g.net, http.MethodGet, url, agentGRUB, &h); err != nil {
		return fmt.Errorf("file `%s' not found: %w", file, err)
	}
	g.kernel = &Kernel{Cmdline: strings.Join(args, " "), Kernel: h.b, KernelSize: h.n}
	return nil
}

func (g *grub) loadInitrds(ctx context.Context, files []string) error {
	if g.kernel == nil {
		return errors.New("you need to load the kernel first")
	}
	g.initrd = tail{}
	for _, file := range files {
		url, err := grubURL(file)
		if err != nil {
			return err
		}
		g.initrd.pad()
		if _, _, err := fetchURL(ctx, g.net, http.MethodGet, url, agentGRUB, &g.initrd); err != nil {
			return fmt.Errorf("file `%s' not found: %w", file, err)
		}
	}
	return nil
}

// boot hands the node to the kernel.
func (g *grub) boot(ctx context.Context) error {
	if g.kernel == nil || g.kernel.KernelSize == 0 {
		return errors.New("you need to load the kernel first")
	}
	k := *g.kernel
	k.Initrd, k.InitrdSize, k.Address, k.MAC = g.initrd.last(), g.initrd.n, g.address, g.mac
	g.kernel, g.initrd = nil, tail{}
	g.done, g.result = true, g.b.hand(ctx, k)
	return nil
}
