// SPDX-License-Identifier: Apache-2.0

package mok

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Waits of a dialogue.
const (
	look     = 100 * time.Millisecond // from one look at the screen to the next
	still    = 250 * time.Millisecond // without a character: the screen is drawn
	answer   = 4 * time.Second        // for what a key changes; then it is pressed again
	stores   = 30 * time.Second       // for the firmware to write the list
	typing   = 100 * time.Millisecond // between two keys: a UART holds 16 characters, and firmware polls it
	restarts = 3                      // of the key that restarts the node, with nothing seen of it
	presses  = 12                     // of keys that change nothing
	most     = 60                     // of all keys: eight suffice
	tries    = 2                      // of the password; MokManager takes three
)

// Keys as terminals send them; EDK2 reads them so whatever terminal it is set to.
const (
	keyUp    = "\x1b[A"
	keyDown  = "\x1b[B"
	keyEnter = "\r"
	keyAny   = " " // does nothing in a menu, if it comes twice
)

// Dialogue answers MokManager. Screen is written to by whoever reads the console.
type Dialogue struct {
	Screen   *Screen
	Clock    clock.Clock
	Password string
	// Press sends keys to the console. It may wait.
	Press func(ctx context.Context, keys string) error
	// Reboot is called once, when MokManager has stored the certificate and is about to restart the
	// node; nil: nothing is to be done before that.
	Reboot func(ctx context.Context) error

	pressed  int  // keys since the screen last changed
	typed    int  // how often the password was
	all      int  // keys, but for those of the password
	restarts bool // Reboot was called
}

// Run watches the screen and answers what MokManager asks, until it restarts the node with the
// certificate in its list, or ctx ends. An error of kind Refused is MokManager's own; one of kind
// Timeout says how far it came.
func (d *Dialogue) Run(ctx context.Context) error {
	err := d.run(ctx)
	if err == nil || ctx.Err() == nil {
		return err
	}
	switch {
	case d.restarts:
		err = errkind.New(errkind.Timeout, "MokManager has the certificate, and does not restart the node")
	case d.typed > 0:
		err = errkind.New(errkind.Timeout, "the password was typed, and MokManager did not go on")
	case d.all > 0:
		err = errkind.New(errkind.Timeout, "MokManager was seen on the console, and did not ask for the password")
	default:
		err = errkind.New(errkind.Timeout, "MokManager was not seen on the console")
	}
	return err
}

func (d *Dialogue) run(ctx context.Context) error {
	idle := -1 // the screen at which there was nothing to do
	for {
		if err := d.settle(ctx); err != nil {
			return err
		}
		if d.Screen.changes() == idle {
			continue
		}
		v := d.Screen.view()
		key, wait, err := d.next(ctx, v)
		if err != nil {
			return err
		}
		if key == "" {
			idle = v.writes
			continue
		}
		d.pressed++
		d.all++
		if d.pressed > presses || d.all > most {
			return errkind.New(errkind.Timeout, "MokManager does not do what is typed")
		}
		if err := d.Press(ctx, key); err != nil {
			return err
		}
		if err := d.changed(ctx, v.writes, wait); err != nil {
			return err
		}
		if d.restarts && (d.pressed == 0 || d.pressed >= restarts) { // whether it restarts is seen by what boots next: a console may say nothing of it
			return nil
		}
	}
}

// settle waits until nothing is drawn.
func (d *Dialogue) settle(ctx context.Context) error {
	was, since := d.Screen.changes(), d.Clock.Now()
	for {
		if err := d.Clock.Sleep(ctx, look); err != nil {
			return err
		}
		now := d.Screen.changes()
		if now != was {
			was, since = now, d.Clock.Now()
		} else if d.Clock.Now().Sub(since) >= still {
			return nil
		}
	}
}

// changed waits until the screen shows something else, for as long as that may take.
func (d *Dialogue) changed(ctx context.Context, was int, limit time.Duration) error {
	for end := d.Clock.Now().Add(limit); d.Clock.Now().Before(end); {
		if d.Screen.changes() != was {
			d.pressed = 0
			return nil
		}
		if err := d.Clock.Sleep(ctx, look); err != nil {
			return err
		}
	}
	return nil
}

// choices are what is chosen in the menus of MokManager, by their titles.
var choices = []struct{ title, choice string }{
	{"Perform MOK management", "Reboot"}, // once something was changed; before it says "Continue boot"
	{"Perform MOK management", "Enroll MOK"},
	{"[Enroll MOK]", "Continue"},
	{"Enroll the key(s)?", "Yes"},
}

// next is the key for what is shown, and how long its effect may take; "": none is to be pressed.
func (d *Dialogue) next(ctx context.Context, v view) (key string, wait time.Duration, err error) {
	switch {
	case v.contains("Password:"): // it is drawn over what refused the one before
		return "", 0, d.password(ctx)
	case v.contains("Password doesn't match"), v.contains("Invalid password length"):
		if d.typed >= tries {
			return "", 0, errkind.New(errkind.Refused, "MokManager refuses the password, which was typed %d times", d.typed)
		}
		return keyEnter, answer, nil
	case v.contains("Failed to enroll keys"), v.contains("Failed to set variable"), v.contains("Failed to get MokAuth"):
		return "", 0, errkind.New(errkind.Refused, "MokManager could not store the certificate")
	case v.contains("Press any key to perform MOK management"):
		return keyAny, answer, nil
	}
	for _, c := range choices {
		if key := v.choose(c.title, c.choice); key != "" {
			if key == keyEnter && c.choice == "Reboot" {
				err = d.reboot(ctx)
			}
			return key, answer, err
		}
	}
	if _, _, menu := v.find("Reset MOK"); menu {
		return "", 0, errkind.New(errkind.Refused, "MokManager has a password and no certificate to enrol")
	}
	return "", 0, nil
}

// choose is the key that leads to a choice of a menu, or takes it; "": the menu is not shown. What
// is chosen has another background than the title.
func (v view) choose(title, choice string) string {
	t, _, shown := v.find(title)
	c, at, has := v.find(choice)
	switch {
	case !shown || !has:
		return ""
	case c.back != t.back:
		return keyEnter
	}
	for row, fields := range v.rows {
		if row > at && slices.ContainsFunc(fields, func(f field) bool { return f.back != 0 && f.back != t.back }) {
			return keyUp
		}
	}
	return keyDown
}

// password types it, as long as it is asked for: nothing of it goes to another program.
func (d *Dialogue) password(ctx context.Context) error {
	d.typed++
	for _, letter := range d.Password {
		if !d.Screen.view().contains("Password:") {
			return nil
		}
		if err := d.Press(ctx, string(letter)); err != nil {
			return err
		}
		if err := d.Clock.Sleep(ctx, typing); err != nil {
			return err
		}
	}
	was := d.Screen.changes()
	if err := d.Press(ctx, keyEnter); err != nil {
		return err
	}
	if err := d.changed(ctx, was, stores); err != nil {
		return err
	}
	if d.typed > tries {
		return errkind.New(errkind.Timeout, "MokManager does not go on behind the password")
	}
	return nil
}

// reboot is called before the node is restarted.
func (d *Dialogue) reboot(ctx context.Context) error {
	if d.restarts || d.Reboot == nil {
		d.restarts = true
		return nil
	}
	d.restarts = true
	return d.Reboot(ctx)
}

// Mask takes a password out of lines that are shown, and what was typed of it.
func Mask(lines []string, password string) (list []string) {
	const least = 4
	for _, line := range lines {
		for n := len(password); n >= least; n-- {
			line = strings.ReplaceAll(line, password[:n], "***")
		}
		list = append(list, line)
	}
	return list
}
