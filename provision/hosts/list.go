// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Limits of a list of hosts.
const (
	MaxList  = 1 << 20 // bytes
	maxHosts = 4096
)

// sshPort is the port of a host without one.
const sshPort = 22

// Host is one line of a list of hosts.
type Host struct {
	Name string // what findings and the report call it
	User string // empty: the user of the command
	Addr string // a name, or an address
	Port uint16
	Decl hcl.Range
}

// Endpoint is where its sshd answers, HOST:PORT.
func (h Host) Endpoint() string { return net.JoinHostPort(h.Addr, strconv.Itoa(int(h.Port))) }

const format = "A line is [USER@]HOST[:PORT] [NAME], such as \"gpu01\" or \"admin@10.0.0.11:2222 gpu01\"; an IPv6 address with a port stands in brackets."

var (
	userName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	dnsName  = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	nodeName = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?$`)
)

// ParseList reads a list of hosts: one a line, with # comments. All that is wrong
// is told at once.
func ParseList(file string, content []byte) ([]Host, diag.List) {
	p := parser{file: file, names: map[string]hcl.Range{}, places: map[string]hcl.Range{}}
	offset, number := 0, 0
	for line := range strings.Lines(string(content)) {
		number++
		p.line(strings.TrimRight(line, "\r\n"), hcl.Pos{Line: number, Column: 1, Byte: offset})
		offset += len(line)
	}
	if len(p.hosts) == 0 && len(p.diags) == 0 {
		p.diags.Add("hosts.list", hcl.Range{Filename: file, Start: hcl.InitialPos, End: hcl.InitialPos}, "No hosts", "The file names no host. "+format)
	}
	if len(p.hosts) > maxHosts {
		p.diags.Add("hosts.list", p.hosts[maxHosts].Decl, "Too many hosts", fmt.Sprintf("The file names %d hosts, and %d are tested at a time. Split the file.", len(p.hosts), maxHosts))
	}
	return p.hosts, p.diags.Sort()
}

// parser reads one list.
type parser struct {
	file          string
	hosts         []Host
	diags         diag.List
	names, places map[string]hcl.Range // of the hosts so far
}

// word is a part of a line with its place.
type word struct {
	text string
	at   hcl.Range
}

// words takes a line apart at blanks, up to a #.
func (p *parser) words(line string, start hcl.Pos) (list []word) {
	line, _, _ = strings.Cut(line, "#")
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		end := i
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		list = append(list, word{line[i:end], hcl.Range{Filename: p.file, Start: moved(start, line[:i]), End: moved(start, line[:end])}})
		i = end
	}
	return list
}

// moved is a place after some text.
func moved(at hcl.Pos, text string) hcl.Pos {
	return hcl.Pos{Line: at.Line, Column: at.Column + utf8.RuneCountInString(text), Byte: at.Byte + len(text)}
}

func (p *parser) line(line string, start hcl.Pos) {
	words := p.words(line, start)
	if len(words) == 0 {
		return
	}
	if len(words) > 2 {
		p.diags.Add("hosts.list", words[2].at, "Too many words", fmt.Sprintf("%q is one word too many. %s", words[2].text, format))
		return
	}
	h, ok := p.host(words[0])
	if !ok {
		return
	}
	named := words[0]
	if len(words) == 2 {
		named, h.Name = words[1], words[1].text
		if !nodeName.MatchString(h.Name) {
			p.diags.Add("hosts.list", named.at, "Name is not one of a node", fmt.Sprintf("%q is not a name: it has letters, digits, dots, hyphens and underscores. %s", h.Name, format))
			return
		}
	}
	if first, dup := p.places[strings.ToLower(h.Endpoint())]; dup {
		p.diags.Add("hosts.list", words[0].at, "Host named twice", fmt.Sprintf("%s is in the file already. Remove one of the lines.", h.Endpoint())).Also("the first one", first)
		return
	}
	if first, dup := p.names[h.Name]; dup {
		p.diags.Add("hosts.list", named.at, "Two hosts of one name", fmt.Sprintf("The name %q is taken. Give one of them another name, behind its address.", h.Name)).Also("the first one", first)
		return
	}
	p.places[strings.ToLower(h.Endpoint())], p.names[h.Name] = words[0].at, named.at
	p.hosts = append(p.hosts, h)
}

// host reads [USER@]HOST[:PORT].
func (p *parser) host(w word) (Host, bool) {
	h := Host{Port: sshPort, Decl: w.at}
	text := w.text
	refuse := func(check, summary, detail string, args ...any) (Host, bool) {
		p.diags.Add(check, w.at, summary, fmt.Sprintf(detail, args...)+" "+format)
		return h, false
	}
	if user, rest, ok := strings.Cut(text, "@"); ok {
		if !userName.MatchString(user) {
			return refuse("hosts.list", "User name is not one", "%q is not the name of a user.", user)
		}
		h.User, text = user, rest
	}
	h.Addr = text
	if host, port, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return refuse("hosts.list", "Port is not one", "%q is not a port: it is a number from 1 to 65535.", port)
		}
		h.Addr, h.Port = host, uint16(n)
	} else if strings.HasPrefix(text, "[") {
		h.Addr = strings.Trim(text, "[]")
	}
	if _, err := netip.ParseAddr(h.Addr); err != nil && !dnsName.MatchString(h.Addr) {
		return refuse("hosts.list", "Host is neither name nor address", "%q is neither the name of a host nor an address.", h.Addr)
	}
	h.Name = h.Addr
	if h.Port != sshPort {
		h.Name = strings.Trim(h.Endpoint(), "[]")
	}
	h.Name = strings.NewReplacer("[", "", "]", "", "%", "-").Replace(h.Name)
	return h, true
}
