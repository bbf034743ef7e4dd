// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
)

// maxSteps bounds a script that never waits. One that holds on for five minutes
// takes about 500.
const maxSteps = 10000

// shell runs one iPXE script: the commands that provision/netboot/ipxe writes,
// with iPXE's own rules for ||, && and ${}. A command that is not known fails, as
// it does in an iPXE that was built without it.
type shell struct {
	b       *Board
	mac     addr.MAC
	how     inventory.Firmware
	address netip.Prefix
	net     network.Network

	lines  []string
	at     int // the next line
	vars   map[string]string
	kernel *Kernel // nil: none loaded
	initrd tail

	done   bool // exit, or something booted
	code   error
	result result
}

// Ends of commands.
var (
	errFalse   = errors.New("not so")
	errUnknown = errors.New("command not found")
	errUsage   = errors.New("wrong arguments")
)

// run runs a script. An error is why it could not go on; the next boot device has
// its turn then, and also after `exit 1`. A script that ends well leaves UEFI in
// its menu, where the node waits for somebody.
func (s *shell) run(ctx context.Context, text string) (result, error) {
	s.lines = strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if s.lines[0] != "#!ipxe" {
		return result{}, errors.New("exec format error: the file is not a script")
	}
	s.vars = map[string]string{"platform": "efi", "buildarch": "x86_64", "mac": s.mac.String(), "ip": s.address.Addr().String()}
	if s.how == inventory.BootBIOS {
		s.vars["platform"], s.vars["buildarch"] = "pcbios", "i386"
	}
	steps := 0
	for s.at < len(s.lines) && !s.done {
		if steps++; steps > maxSteps {
			return result{}, errors.New("the script never ends")
		}
		line := s.lines[s.at]
		s.at++
		if err := s.line(ctx, line); err != nil {
			s.b.complain(ctx, "Could not boot: line %d: %q: %v", s.at, line, err)
			return result{}, nil
		}
	}
	if s.result.booted || s.code != nil {
		return s.result, nil
	}
	if s.how != inventory.BootBIOS {
		s.b.printf("The boot manager's menu waits for a key")
		<-ctx.Done()
	}
	return result{}, nil
}

// line runs the commands of one line. What is not to be run leaves the result of
// the one before it (iPXE's system()).
func (s *shell) line(ctx context.Context, line string) (err error) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || line[0] == ':' {
		return nil
	}
	process := true
	for rest := strings.Fields(line); ; {
		command, operator, after := cutCommand(rest)
		if process {
			here := s.at
			err = s.command(ctx, s.expand(command))
			if s.done || ctx.Err() != nil || s.at != here { // exit, or goto
				return err
			}
		}
		switch operator {
		case "":
			return err
		case "||":
			process = err != nil
		case "&&":
			process = err == nil
		default:
			process = true
		}
		rest = after
	}
}

// cutCommand splits words at the first ||, && or ;. The operator is empty when there
// is none.
func cutCommand(words []string) (command []string, operator string, after []string) {
	for i, w := range words {
		if w == "||" || w == "&&" || w == ";" {
			return words[:i], w, words[i+1:]
		}
	}
	return words, "", nil
}

// expand puts settings in for ${name}; one that is not known is empty.
func (s *shell) expand(words []string) []string {
	var b strings.Builder
	text := strings.Join(words, " ")
	for {
		before, rest, open := strings.Cut(text, "${")
		b.WriteString(before)
		name, after, closed := strings.Cut(rest, "}")
		if !open || !closed {
			b.WriteString(rest)
			return strings.Fields(b.String())
		}
		name, _, _ = strings.Cut(name, ":")
		b.WriteString(s.vars[name])
		text = after
	}
}
