// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

// Account is one user of the BMC.
type Account struct {
	ID, Username, Role string
	Enabled, Locked    bool
}

// maxAccounts bounds the accounts that are read; BMCs have 10 to 17.
const maxAccounts = 64

// Accounts lists the accounts; empty slots are left out.
func (c *Client) Accounts(ctx context.Context) ([]Account, error) {
	all, err := c.accounts(ctx)
	if err != nil {
		return nil, err
	}
	var out []Account
	for _, a := range all {
		if a.UserName != "" {
			out = append(out, Account{ID: OneLine(string(a.ID)), Username: OneLine(string(a.UserName)), Role: OneLine(string(a.RoleId)), Enabled: a.Enabled, Locked: a.Locked})
		}
	}
	return out, nil
}

// account is what is read of a ManagerAccount.
type account struct {
	path            string
	ID              text `json:"Id"`
	UserName        text
	RoleId          text //nolint:revive // the schema's name
	Enabled, Locked bool
}

// accountsPath is the collection.
func (c *Client) accountsPath(ctx context.Context) (string, error) {
	if _, err := c.where(ctx); err != nil {
		return "", err
	}
	var s struct{ Accounts link }
	_, err := c.get(ctx, c.root.AccountService.or(rootPath+"AccountService"), &s)
	return s.Accounts.or(rootPath + "AccountService/Accounts"), err
}

// accounts reads all accounts, empty slots too.
func (c *Client) accounts(ctx context.Context) ([]account, error) {
	path, err := c.accountsPath(ctx)
	if err != nil {
		return nil, err
	}
	all, err := c.members(ctx, path, maxAccounts)
	if err != nil {
		return nil, err
	}
	var out []account
	for _, l := range all {
		a := account{path: string(l)}
		if _, err := c.get(ctx, a.path, &a); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// SetPassword changes an account's password. The client itself continues with its
// old one; see Adopt.
func (c *Client) SetPassword(ctx context.Context, username string, password secret.Value) error {
	all, err := c.accounts(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(a account) bool { return string(a.UserName) != username })
	switch len(all) {
	case 0:
		return errkind.New(errkind.NotFound, "the bmc has no account of that name").Do("Correct the user name of the bmc block.")
	case 1:
		_, err = c.patch(ctx, all[0].path, map[string]string{"Password": password.Reveal()})
		return hide(err)
	}
	var ids []string
	for _, a := range all {
		ids = append(ids, cmp.Or(string(a.ID), a.path))
	}
	return errkind.New(errkind.Conflict, "the bmc has %d accounts of that name: %s", len(all), OneLine(strings.Join(ids, ", "))).
		Do("Delete or rename all but one on the BMC. No password was changed.")
}

// Adopt makes password the one that the client logs in with, if username is its
// own.
func (c *Client) Adopt(username string, password secret.Value) {
	if username == c.cfg.Username {
		c.cfg.Password = password
	}
}

// hide takes the BMC's own words out of an error: some repeat the password that
// they did not like.
func hide(err error) error {
	if f, ok := asFault(err); ok {
		ids := make([]Message, 0, len(f.Messages))
		for _, m := range f.Messages {
			ids = append(ids, Message{ID: m.ID})
		}
		return errkind.New(errkind.Of(err), "%w", &Fault{Status: f.Status, Path: f.Path, Messages: ids}).
			Do("Compare the new password with the BMC's rules: 13 to 20 characters with a special one are enough for all that are known.")
	}
	return err
}

// TryPassword reports, by one log-in of its own, whether a password is accepted;
// nil when it is.
func (c *Client) TryPassword(ctx context.Context, username string, password secret.Value) error {
	cfg := c.cfg
	cfg.Username, cfg.Password = username, password
	if cfg.TLS.Mode == PinFirstSeen || cfg.TLS.Mode == "" {
		cfg.Pinned = c.Certificate()
	}
	other, err := New(cfg)
	if err != nil {
		return err
	}
	c.wires.CloseIdleConnections()
	defer other.Close(ctx)
	return other.Open(ctx)
}

// AddAccount makes an account. Services whose accounts are slots get an empty one
// filled, never the first two: slot 1 is reserved and 2 is root on iDRAC.
func (c *Client) AddAccount(ctx context.Context, a Account, password secret.Value) error {
	body := map[string]any{"UserName": a.Username, "Password": password.Reveal(), "RoleId": a.Role, "Enabled": true}
	if !c.quirks.Has(quirk.SlotAccounts) {
		path, err := c.accountsPath(ctx)
		if err == nil {
			_, err = c.post(ctx, path, body)
		}
		if !isStatus(err, http.StatusMethodNotAllowed) {
			return hide(err)
		}
	}
	all, err := c.accounts(ctx)
	if err != nil {
		return err
	}
	for _, slot := range all {
		if slot.UserName == "" && slot.ID != "1" && slot.ID != "2" {
			_, err := c.patch(ctx, slot.path, body)
			return hide(err)
		}
	}
	return errkind.New(errkind.Refused, "the bmc has no free account").Do("Delete an account on the BMC.")
}
