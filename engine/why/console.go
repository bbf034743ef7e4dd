// SPDX-License-Identifier: Apache-2.0

package why

import "strings"

// Screen turns what a serial console prints into lines: escape sequences of
// terminals (ECMA-48) and other control characters are left out, and a line ends
// at a line feed or after maxLine bytes. It is an io.Writer that never fails. What
// lines hold is text from outside. It is not safe for concurrent use.
type Screen struct {
	Line func(string) // called for each line that is not empty

	line  []byte
	state escape
}

// maxLine bounds one line of a console.
const maxLine = 1024

// escape is where in an escape sequence a Screen is.
type escape int

// The states.
const (
	plainText escape = iota
	escaped          // after ESC
	inside           // of a control sequence, ESC [ ...
	returned         // after CR: what follows writes over the line
)

// Write takes what was printed.
func (s *Screen) Write(b []byte) (int, error) {
	for _, c := range b {
		s.put(c)
	}
	return len(b), nil
}

// Flush ends a line that was begun.
func (s *Screen) Flush() {
	if text := strings.TrimSpace(string(s.line)); text != "" {
		s.Line(text)
	}
	s.line = s.line[:0]
}

func (s *Screen) put(c byte) {
	was := s.state
	s.state = plainText
	switch {
	case c == 0x1b:
		s.state = escaped
	case was == escaped && c == '[':
		s.state = inside
	case was == escaped:
	case was == inside:
		s.sequence(c)
	case c == '\n':
		s.Flush()
	case c == '\r':
		s.state = returned
	case c == '\t':
		s.line = append(s.line, ' ')
	case c < ' ' || c == 0x7f:
		s.state = was
	default:
		if was == returned {
			s.Flush()
		}
		s.line = append(s.line, c)
	}
	if len(s.line) >= maxLine {
		s.Flush()
	}
}

// sequence takes one byte of a control sequence. One that moves the cursor or
// clears the screen begins another line: menus of firmware have no line feeds.
func (s *Screen) sequence(c byte) {
	switch {
	case c < 0x40 || c > 0x7e:
		s.state = inside
	case c == 'H' || c == 'f' || c == 'J':
		s.Flush()
	}
}

// ConsoleMessage is what a line of a console means.
type ConsoleMessage struct {
	Text   string `json:"text"` // part of the line by which it is known, in lower case
	Cause  string `json:"cause"`
	Action string `json:"action"`
	Source string `json:"source"` // where the text comes from

	ends bool // nothing comes after it: the node is stuck at once, not only when it is late
}

// said are the lines that name a cause. Sources: the Linux kernel by file, iPXE's
// and Intel's messages by their documents.
var said = []ConsoleMessage{
	{"unable to mount root fs", "the kernel found no root file system", "Look whether the image has the driver of the boot disk, and whether root= names what was written.", "Linux, init/do_mounts.c", true},
	{"out of memory and no killable processes", "the kernel ran out of memory", "Look at the memory that the firmware reports, and for modules that it switched off.", "Linux, mm/oom_kill.c", true},
	{"kernel panic - not syncing", "the kernel stopped", "Read the lines before it: they name the fault.", "Linux, kernel/panic.c", true},
	{"no bootable device", "the firmware found nothing to boot from", "Look at the boot order, and that network boot is enabled for the boot NIC.", "SeaBIOS, src/boot.c, and other firmware", false},
	{"pxe-e51", "no DHCP server answered the boot NIC", "Look at the VLAN of its switch port, and at a DHCP relay on the way.", "Intel Boot Agent messages", false},
	{"pxe-e53", "a DHCP server answered and named no boot file: it was another than ironrail's", "Find the other DHCP server on the boot network.", "Intel Boot Agent messages", false},
	{"pxe-e18", "the boot server did not answer in time", "Look at TFTP (UDP 69 and high ports) between the boot network and this controller.", "UEFI PXE base code of EDK II", false},
	{"pxe-e61", "the boot NIC has no link", "Look at the cable and the switch port of the boot NIC.", "Intel Boot Agent messages", false},
	{"memory training fail", "the memory could not be set up", "Reseat or replace the memory module that the line or the BMC's event log names.", "memory reference code of server firmware", false},
}

// ExplainConsoleLine says what a line of a console means; false when it is not known.
func ExplainConsoleLine(line string) (ConsoleMessage, bool) {
	low := strings.ToLower(line)
	for _, s := range said {
		if strings.Contains(low, s.Text) {
			return s, true
		}
	}
	return ConsoleMessage{}, false
}
