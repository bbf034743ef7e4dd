// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// Variables are those of shim in the firmware, by names without its GUID.
type Variables interface {
	Get(name string) ([]byte, error)
	Set(name string, value []byte) error
	Delete(name string)
}

// mokFile is MokManager, which shim loads from where it came from itself.
const mokFile = "mmx64.efi"

// Size of the screen, the least that firmware has.
const screenRows, screenColumns = 25, 80

// Keys as EDK2 tells them from a serial line.
const (
	keyNone = iota
	keyText
	keyDown
	keyUp
	keyEnter
)

// pendingMOK reports whether shim starts MokManager (mok.c, check_mok_request).
func (b *Board) pendingMOK() bool {
	for _, name := range []string{"MokNew", "MokAuth"} {
		if _, err := b.variable(name); err == nil {
			return true
		}
	}
	return false
}

var errNoVariables = errors.New("there are no variables")

func (b *Board) variable(name string) ([]byte, error) {
	if b.cfg.Shim == nil || !b.cfg.SecureBoot {
		return nil, errNoVariables
	}
	return b.cfg.Shim.Get(name)
}

// manager is one run of MokManager (MokManager.c, lib/console.c).
type manager struct {
	b    *Board
	list []byte // MokNew; nil: enrolled, or there was none
	auth []byte
}

// mokManager runs it. restart: the node is reset with another list.
func (b *Board) mokManager(ctx context.Context) (restart bool, err error) {
	m := manager{b: b}
	m.list, _ = b.variable("MokNew") // none is nil
	m.auth, _ = b.variable("MokAuth")
	b.cfg.Shim.Delete("MokNew")
	defer b.cfg.Shim.Delete("MokAuth")
	wait := 10
	if v, err := b.variable("MokTimeout"); err == nil && len(v) == 4 {
		wait = int(int32(binary.LittleEndian.Uint32(v)))
		b.cfg.Shim.Delete("MokTimeout")
	}
	if wait >= 0 {
		pressed, err := m.countdown(ctx, wait)
		if err != nil || !pressed {
			return false, err
		}
	}
	return m.menu(ctx)
}

// menu is the first menu, until the boot goes on.
func (m *manager) menu(ctx context.Context) (changed bool, err error) {
	for {
		items := []string{"Continue boot"}
		if changed {
			items[0] = "Reboot"
		}
		if m.list != nil {
			items = append(items, "Enroll MOK")
		} else if m.auth != nil && !changed {
			items = append(items, "Reset MOK")
		}
		choice, err := m.choose(ctx, "Perform MOK management", append(items, "Enroll key from disk", "Enroll hash from disk"))
		switch {
		case err != nil || choice == 0:
			m.clear()
			return changed, err
		case choice < len(items) && items[choice] == "Enroll MOK":
			enrolled, err := m.enrol(ctx)
			if err != nil {
				return changed, err
			}
			changed = changed || enrolled
		}
	}
}

// enrol asks whether a certificate is wanted, and for the password.
func (m *manager) enrol(ctx context.Context) (bool, error) {
	for {
		choice, err := m.choose(ctx, "[Enroll MOK]", []string{"View key 0", "Continue"})
		if err != nil {
			return false, err
		}
		if choice == 1 {
			break
		}
	}
	if yes, err := m.choose(ctx, "Enroll the key(s)?", []string{"No", "Yes"}); err != nil || yes == 0 {
		return false, err
	}
	for range 3 {
		password, err := m.line(ctx)
		if err != nil {
			return false, err
		}
		if bytes.Equal(authOf(m.list, password), m.auth) {
			had, _ := m.b.variable("MokList") // none is empty
			err := m.b.cfg.Shim.Set("MokList", append(had, m.list...))
			m.list, m.auth = nil, nil
			return err == nil, err
		}
		if _, err := m.choose(ctx, "Password doesn't match", []string{"OK"}); err != nil {
			return false, err
		}
	}
	_, err := m.choose(ctx, "Failed to enroll keys", []string{"OK"})
	return false, err
}

func authOf(list []byte, password string) []byte {
	b := bytes.Clone(list)
	for _, u := range utf16.Encode([]rune(password)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// print prints at a place, from 1.
func (m *manager) print(row, column int, text string) {
	m.raw(fmt.Sprintf("\x1b[%02d;%02dH%s", row, column, text))
}

func (m *manager) raw(text string) {
	if m.b.cfg.Console != nil {
		_, _ = fmt.Fprint(m.b.cfg.Console, text) // nobody may be listening
	}
}

func (m *manager) clear() { m.raw("\x1b[0m\x1b[2J\x1b[01;01H") }

// box draws lines in a box, in the middle of it, or below its upper edge. The line of highlight has
// another background; -1: none has.
func (m *manager) box(row, column, rows, columns int, lines []string, highlight int, top bool) {
	const blue, black = "\x1b[37m\x1b[44m", "\x1b[37m\x1b[40m"
	m.raw(blue)
	edge := "+" + strings.Repeat("-", columns-2) + "+"
	m.print(row, column, edge)
	first := (rows - len(lines)) / 2
	if top {
		first = 1
	}
	for i := 1; i < rows-1; i++ {
		text := strings.Repeat(" ", columns-2)
		at := i - first
		if at >= 0 && at < len(lines) {
			pad := max((columns-2-len(lines[at]))/2, 0)
			text = fmt.Sprintf("%-*s", columns-2, strings.Repeat(" ", pad)+lines[at])
		}
		if at >= 0 && at == highlight {
			m.raw(black)
		}
		m.print(row+i, column, "|"+text+"|")
		m.raw(blue)
	}
	m.print(row+rows-1, column, edge)
}

// title draws the box that fills the screen.
func (m *manager) title(text string) {
	m.box(1, 1, screenRows-1, screenColumns, []string{text}, -1, true)
}

// countdown waits for a key.
func (m *manager) countdown(ctx context.Context, seconds int) (pressed bool, err error) {
	m.title("Shim UEFI key management")
	const message = "Press any key to perform MOK management"
	m.print(screenRows/2, (screenColumns-len(message))/2, message)
	for ; seconds > 0; seconds-- {
		m.print(screenRows-2, 3, fmt.Sprintf("Booting in %d seconds  ", seconds))
		wait, cancel := m.b.cfg.Clock.WithTimeout(ctx, time.Second)
		key, _, err := m.key(wait)
		cancel()
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err == nil && key != keyNone {
			return true, nil
		}
	}
	return false, nil
}

// choose is a menu (lib/console.c, console_select).
func (m *manager) choose(ctx context.Context, title string, items []string) (int, error) {
	columns, chosen := 0, 0
	for _, i := range items {
		columns = max(columns, len(i)+4)
	}
	m.title(title)
	for {
		m.box((screenRows-len(items)-2)/2, (screenColumns-columns)/2, len(items)+2, columns, items, chosen, false)
		key, _, err := m.key(ctx)
		switch {
		case err != nil:
			return 0, err
		case key == keyEnter:
			return chosen, nil
		case key == keyDown:
			chosen = min(chosen+1, len(items)-1)
		case key == keyUp:
			chosen = max(chosen-1, 0)
		}
	}
}

// line asks for a password, of which nothing is shown.
func (m *manager) line(ctx context.Context) (string, error) {
	const columns = 26
	m.box((screenRows-3)/2, (screenColumns-columns)/2, 3, columns, []string{"Password:            "}, -1, false)
	var b strings.Builder
	for {
		key, text, err := m.key(ctx)
		switch {
		case err != nil:
			return "", err
		case key == keyEnter:
			m.raw("\r\n")
			return b.String(), nil
		case key == keyText:
			b.WriteByte(text)
		}
	}
}

// key is the next key. An escape sequence that is none is dropped.
func (m *manager) key(ctx context.Context) (int, byte, error) {
	next := func() (byte, error) {
		select {
		case c := <-m.b.cfg.Typed:
			return c, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	for {
		c, err := next()
		switch {
		case err != nil:
			return keyNone, 0, err
		case c == '\r':
			return keyEnter, 0, nil
		case c != 0x1b:
			return keyText, c, nil
		}
		for range 2 {
			if c, err = next(); err != nil {
				return keyNone, 0, err
			}
		}
		switch c {
		case 'A':
			return keyUp, 0, nil
		case 'B':
			return keyDown, 0, nil
		}
	}
}

// checkMOK is what shim does before it loads the next program: fetch loads MokManager from where
// shim came from. done: the node does not go on, with this result.
func (b *Board) checkMOK(ctx context.Context, fetch func() error) (r result, done bool) {
	if !b.pendingMOK() {
		return result{}, false
	}
	if err := fetch(); err != nil {
		b.printf("Failed to start MokManager: Not Found")
		return result{}, true
	}
	restart, err := b.mokManager(ctx)
	if err != nil {
		return result{}, true
	}
	return result{booted: true, exit: chassis.Reset}, restart
}
