// SPDX-License-Identifier: Apache-2.0

package mok

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
)

// TestRequest: a list of one certificate, a password of its own each time, and what binds them. The

func TestRequest(t *testing.T) {
	t.Parallel()
	der := []byte("a certificate")
	r, other := NewRequest(der), NewRequest(der)
	if len(r.Password) != passwordLength || r.Password == other.Password || bytes.Equal(r.Auth, other.Auth) || !bytes.Equal(r.New, other.New) {
		t.Errorf("%+v, %+v", r, other)
	}
	if size := binary.LittleEndian.Uint32(r.New[16:]); int(size) != len(r.New) || binary.LittleEndian.Uint32(r.New[24:]) != size-28 || !bytes.HasSuffix(r.New, der) {
		t.Errorf("list %x", r.New)
	}
	if got := fmt.Sprintf("%x", authenticate([]byte("list"), "ab")); got != "892931944e05b0d564215181a4bc0b0ab78d7cecb7e2f29c92b13d0024b2d1b2" {
		t.Errorf("authentication %s", got)
	}
	if got := Mask([]string{"Password: " + r.Password, r.Password[:5] + "!", "login"}, r.Password); !slices.Equal(got, []string{"Password: ***", "***!", "login"}) {
		t.Errorf("masked: %q", got)
	}
}

// TestScreen: text stands where the cursor was, whatever draws the lines of boxes.
func TestScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ printed, want string }{
		"lines":         {"one\r\n  two\r\nthree", "one/two/three"},
		"written over":  {"\x1b[05;03Hfour\x1b[5;3Hfive", "five"},
		"cleared":       {"old\x1b[2J\x1b[1;1Hnew", "new"},
		"rest of line":  {"keep this\x1b[1;5H\x1b[K", "keep"},
		"box of ASCII":  {"+----+\r\n| ok |\r\n+----+", "ok"},
		"box of UTF-8":  {"\u250c\u2500\u2510\r\n\u2502ok\u2502\r\n", "ok"},
		"box of CP437":  {"\xda\xc4\xc4\r\n\xb3ok\xb3", "ok"},
		"two boxes":     {"| left |  | right |", "left  right"},
		"character set": {"\x1b(Bplain\x1b[0m", "plain"},
		"moved":         {"a\x1b[2Cb\x1b[3Dx\bz", "az b"},
		"far away":      {"\x1b[999;999Hx\x1b[1;1Hy", "y/x"},
		"below":         {strings.Repeat("gone\r\n", rows) + "last", strings.TrimSuffix(strings.Repeat("gone/", rows-1), "/") + "/last"},
	} {
		var s Screen
		_, _ = s.Write([]byte(c.printed)) // memory takes it
		if got := strings.Join(s.Lines(), "/"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzScreen(f *testing.F) {
	f.Add([]byte("\x1b[01;01H\x1b[44m+--+\x1b[2J\x1b(0x\xc4\xbf"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var s Screen
		_, _ = s.Write(b) // memory takes it
		_ = s.Lines()
		_ = s.view().choose("a", "b")
	})
}

// paper is MokManager as this test needs it: a menu behind another, drawn as lib/console.c does.
type paper struct {
	mu       sync.Mutex
	screen   *Screen
	at       int // of menus; len(menus): the password
	chosen   int
	typed    string
	password string
	failed   int
	plain    bool // without colours
	deaf     int  // keys that are lost
	restarts int
	done     bool
	gone     bool // the boot went on without it
}

// menus lead to the password.
var menus = []struct {
	title string
	items []string
	want  int
}{
	{"Perform MOK management", []string{"Continue boot", "Enroll MOK", "Enroll key from disk"}, 1},
	{"[Enroll MOK]", []string{"View key 0", "Continue"}, 1},
	{"Enroll the key(s)?", []string{"No", "Yes"}, 1},
}

// draw draws a menu over what was there.
func (p *paper) draw(title string, items []string) {
	blue, black := "\x1b[37m\x1b[44m", "\x1b[37m\x1b[40m"
	if p.plain {
		blue, black = "", ""
	}
	text := blue + fmt.Sprintf("\x1b[1;1H|%-78s|", "          "+title)
	for row := 2; row < 24; row++ {
		text += fmt.Sprintf("\x1b[%d;1H|%-78s|", row, "")
	}
	for i, item := range items {
		back := blue
		if i == p.chosen {
			back = black
		}
		text += fmt.Sprintf("\x1b[%d;20H%s| %-22s |%s", 10+i, back, item, blue)
	}
	_, _ = p.screen.Write([]byte(text)) // memory takes it
}

func (p *paper) show() {
	switch {
	case p.gone:
		_, _ = p.screen.Write([]byte("\x1b[0m\x1b[2J\x1b[1;1Hlogin: ")) // memory takes it
	case p.done:
		p.draw("Perform MOK management", []string{"Reboot", "Enroll key from disk"})
	case p.failed > 0 && p.at < 0:
		p.draw("Password doesn't match", []string{"OK"})
	case p.at == len(menus):
		_, _ = p.screen.Write([]byte("\x1b[11;25H|Password:            |")) // memory takes it
	default:
		p.draw(menus[p.at].title, menus[p.at].items)
	}
}

// press is what a key does.
func (p *paper) press(_ context.Context, keys string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf > 0 {
		p.deaf--
		return nil
	}
	switch {
	case p.gone:
		return nil
	case p.at == len(menus) && keys == keyEnter:
		p.done = p.typed == p.password
		if !p.done {
			p.at, p.failed, p.chosen = -1, p.failed+1, 0
		}
		p.at, p.typed, p.chosen = min(p.at, -1), "", 0
	case p.at == len(menus):
		p.typed += keys
		return nil // nothing is shown
	case keys == keyDown:
		p.chosen++
	case keys == keyUp:
		p.chosen--
	case keys == keyEnter && p.done:
		p.gone = true
	case keys == keyEnter && p.at < 0:
		p.at = len(menus)
	case keys == keyEnter && p.chosen == menus[p.at].want:
		p.at, p.chosen = p.at+1, 0
	case keys == keyEnter:
		p.gone = true // the boot goes on
	}
	p.show()
	return nil
}

// TestDialogue: MokManager is answered from its countdown to the restart, with keys that are lost,
// and with a choice that is behind the one that is wanted; what it refuses and where it stands still
// ends the dialogue with that.
func TestDialogue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit     func(*paper)
		password string
		kind     errkind.Kind // 0: none
		want     string       // in the error
	}{
		"all":            {func(*paper) {}, "secret-password1", 0, ""},
		"lost keys":      {func(p *paper) { p.deaf = 2 }, "secret-password1", 0, ""},
		"behind it":      {func(p *paper) { p.chosen = 2 }, "secret-password1", 0, ""},
		"wrong password": {func(*paper) {}, "another-password", errkind.Refused, "refuses the password, which was typed 2 times"},
		"no colours":     {func(p *paper) { p.plain = true }, "secret-password1", errkind.Timeout, "does not do what is typed"},
		"deaf":           {func(p *paper) { p.deaf = 1000 }, "secret-password1", errkind.Timeout, "does not do what is typed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s Screen
			p := &paper{screen: &s, password: "secret-password1"}
			c.edit(p)
			p.show()
			d := Dialogue{Screen: &s, Clock: clock.NewFast(50), Password: c.password, Press: p.press, Reboot: func(context.Context) error { p.restarts++; return nil }}
			err := d.Run(t.Context())
			if got := errkind.Of(err); err != nil && got != c.kind || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v (%v)\n%q", err, errkind.Of(err), s.Lines())
			}
			if want := c.want == ""; p.gone != want || p.restarts != map[bool]int{true: 1}[want] {
				t.Errorf("restarted: %t, %d times asked", p.gone, p.restarts)
			}
		})
	}
}

// TestDialogueEnds: what was seen until nobody waits any more is in the error.
func TestDialogueEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		printed string
		want    string
	}{
		"nothing":     {"BdsDxe: starting Boot0001", "MokManager was not seen on the console"},
		"no password": {"\x1b[37m\x1b[44mPress any key to perform MOK management", "MokManager was seen on the console, and did not ask for the password"},
	} {
		var s Screen
		_, _ = s.Write([]byte(c.printed)) // memory takes it
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		d := Dialogue{Screen: &s, Clock: clock.NewFast(20), Press: func(context.Context, string) error { _, _ = s.Write([]byte(" ")); return nil }}
		if err := d.Run(ctx); errkind.Of(err) != errkind.Timeout || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	var s Screen
	p := paper{screen: &s}
	p.draw("Perform MOK management", []string{"Continue boot", "Reset MOK"})
	d := Dialogue{Screen: &s, Clock: clock.NewFast(50), Press: p.press}
	if err := d.Run(t.Context()); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "no certificate to enrol") {
		t.Errorf("a password alone: %v", err)
	}
}
