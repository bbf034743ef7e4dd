// SPDX-License-Identifier: Apache-2.0

package chassis

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxAccounts is how many accounts a BMC has room for.
const maxAccounts = 16

// Errors of Login and SetAccount.
var (
	errWrong   = errors.New("the user or the password is wrong")
	ErrLocked  = errors.New("the account is locked after too many failed log-ins")
	ErrAccount = errors.New("the account cannot be kept") // a name in use, or no room
)

// user is an account with what log-in keeps about it.
type user struct {
	Account
	failed int
	locked time.Time // until then
}

// Login checks a user's password. Failures count per account; after LockAfter
// of them in a row even the right password is ErrLocked for LockFor. An unknown
// or disabled user is errWrong.
func (c *Chassis) Login(name, password string) (Account, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(name)
	if i < 0 || !c.users[i].Enabled {
		return Account{}, errWrong
	}
	u := &c.users[i]
	now := c.cfg.Clock.Now()
	if now.Before(u.locked) {
		return Account{}, ErrLocked
	}
	if subtle.ConstantTimeCompare([]byte(password), []byte(u.Password)) != 1 {
		if u.failed++; u.failed >= c.cfg.LockAfter {
			u.failed, u.locked = 0, now.Add(c.cfg.LockFor)
			c.record("Warning", "Security", "Account "+u.Username+" locked out")
		}
		return Account{}, errWrong
	}
	u.failed = 0
	return u.Account, nil
}

// Locked reports whether an account is locked out now.
func (c *Chassis) Locked(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(name)
	return i >= 0 && c.cfg.Clock.Now().Before(c.users[i].locked)
}

// Lock locks every account out for d, as failed log-ins would; 0: LockFor.
func (c *Chassis) Lock(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d <= 0 {
		d = c.cfg.LockFor
	}
	for i := range c.users {
		c.users[i].locked = c.cfg.Clock.Now().Add(d)
	}
}

// Accounts returns the accounts with their passwords, which IPMI's key exchange
// needs, ordered by ID.
func (c *Chassis) Accounts() []Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Account, len(c.users))
	for i, u := range c.users {
		all[i] = u.Account
	}
	return all
}

// SetAccount creates or changes the account with the ID; 0 is the next free one.
// An empty password keeps the old, an empty name deletes the account. ErrAccount
// when the name is taken or there is no room.
func (c *Chassis) SetAccount(a Account) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.users, func(u user) bool { return u.ID == a.ID })
	if by := c.find(a.Username); by >= 0 && by != at {
		return fmt.Errorf("%w: name %q is in use", ErrAccount, a.Username)
	}
	if a.ID < 0 || a.ID > maxAccounts || at < 0 && len(c.users) >= maxAccounts {
		return fmt.Errorf("%w: no room", ErrAccount)
	}
	if c.ignored["accounts"] {
		return nil
	}
	switch {
	case a.Username == "":
		if at >= 0 {
			c.users = slices.Delete(c.users, at, at+1)
		}
	case at < 0:
		c.addUser(a)
	default:
		if a.Password == "" {
			a.Password = c.users[at].Password
		}
		c.users[at] = user{Account: a}
	}
	return nil
}

// addUser adds an account, giving it an ID where it has none. c.mu is held, or
// nobody else has c yet.
func (c *Chassis) addUser(a Account) {
	for id := 1; a.ID == 0; id++ {
		if !slices.ContainsFunc(c.users, func(u user) bool { return u.ID == id }) {
			a.ID = id
		}
	}
	c.users = append(c.users, user{Account: a})
	slices.SortFunc(c.users, func(x, y user) int { return x.ID - y.ID })
}

// find returns the index of a user's name, or -1. c.mu is held.
func (c *Chassis) find(name string) int {
	if name == "" {
		return -1
	}
	return slices.IndexFunc(c.users, func(u user) bool { return u.Username == name })
}
