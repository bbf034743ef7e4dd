// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// role is what an account may do.
type role struct {
	id         string
	privileges []string
}

// roles are the predefined ones and their privileges (DSP0266, 13.2.9).
var roles = []role{
	{"Administrator", []string{"Login", "ConfigureManager", "ConfigureUsers", "ConfigureComponents", "ConfigureSelf"}},
	{"Operator", []string{"Login", "ConfigureComponents", "ConfigureSelf"}},
	{"ReadOnly", []string{"Login", "ConfigureSelf"}},
}

func accountService(c *call) obj {
	id := c.s.c.Identity()
	return obj{"@odata.type": "#AccountService.v1_10_0.AccountService", "Id": "AccountService", "Name": "Account Service",
		"ServiceEnabled": true, "Status": statusOK(), "MinPasswordLength": c.s.p.PasswordMin, "MaxPasswordLength": 20,
		"AccountLockoutThreshold": id.LockAfter, "AccountLockoutDuration": int(id.LockFor.Seconds()),
		"Accounts": linkTo("AccountService", "Accounts"), "Roles": linkTo("AccountService", "Roles")}
}

func getRoles(c *call) obj {
	ids := make([]string, len(roles))
	for i, r := range roles {
		ids[i] = r.id
	}
	return c.collection("Role", "Roles Collection", ids)
}

func getRole(c *call) obj {
	for _, r := range roles {
		if r.id == c.args[0] {
			return obj{"@odata.type": "#Role.v1_3_0.Role", "Id": r.id, "Name": "User Role", "RoleId": r.id, "IsPredefined": true,
				"AssignedPrivileges": r.privileges}
		}
	}
	return nil
}

// accountID is how an account is named in URIs.
func (s *server) accountID(a chassis.Account) string {
	if s.p.Accounts == "name" {
		return a.Username
	}
	return strconv.Itoa(a.ID)
}

func getAccounts(c *call) obj {
	var ids []string
	if c.s.p.Accounts == "slots" {
		for i := range c.s.p.AccountSlots {
			ids = append(ids, memberID(i, 1))
		}
	} else {
		for _, a := range c.s.c.Accounts() {
			ids = append(ids, c.s.accountID(a))
		}
	}
	return c.collection("ManagerAccount", "Accounts Collection", ids)
}

// account finds an account by its URI's last part; an empty slot is an account
// without a name.
func (c *call) account() (chassis.Account, bool) {
	id := c.args[0]
	for _, a := range c.s.c.Accounts() {
		if c.s.accountID(a) == id {
			return a, true
		}
	}
	n, err := strconv.Atoi(id)
	if c.s.p.Accounts == "slots" && err == nil && n >= 1 && n <= c.s.p.AccountSlots && strconv.Itoa(n) == id {
		return chassis.Account{ID: n, Role: "None"}, true
	}
	return chassis.Account{}, false
}

func getAccount(c *call) obj {
	a, ok := c.account()
	if !ok {
		return nil
	}
	o := obj{"@odata.type": "#ManagerAccount.v1_8_0.ManagerAccount", "Id": c.s.accountID(a), "Name": "User Account",
		"UserName": a.Username, "Password": nil, "RoleId": a.Role, "Enabled": a.Enabled, "Locked": c.s.c.Locked(a.Username),
		"AccountTypes": []string{"Redfish", "IPMI"}, "Links": obj{}}
	if slices.ContainsFunc(roles, func(r role) bool { return r.id == a.Role }) {
		o["Links"] = obj{"Role": linkTo("AccountService", "Roles", a.Role)}
	}
	return o
}

// fill writes the properties of a request into an account; when one is wrong
// it has answered.
func (c *call) fill(a *chassis.Account, o obj) bool {
	if !c.only(o, "UserName", "Password", "RoleId", "Enabled", "Locked", "AccountTypes", "PasswordChangeRequired") {
		return false
	}
	for key, field := range map[string]*string{"UserName": &a.Username, "Password": &a.Password, "RoleId": &a.Role} {
		v, has, ok := c.text(o, key)
		if !ok {
			return false
		}
		if has {
			*field = v
		}
	}
	if v, has := o["Enabled"]; has {
		b, isBool := v.(bool)
		if !isBool {
			c.fail("PropertyValueTypeError", "Enabled", "Enabled")
			return false
		}
		a.Enabled = b
	}
	if p, has := o["Password"].(string); has && (len(p) < c.s.p.PasswordMin || len(p) > 20) {
		c.fail("PropertyValueFormatError", "***", "Password")
		return false
	}
	if a.Username != "" && a.Role != "Administrator" && a.Role != "Operator" && a.Role != "ReadOnly" {
		c.fail("PropertyValueNotInList", a.Role, "RoleId")
		return false
	}
	return true
}

// postAccount creates an account; where accounts are fixed slots a free one is
// changed instead and POST is refused.
func postAccount(c *call) {
	if c.s.p.Accounts == "slots" {
		c.fail("OperationNotAllowed")
		return
	}
	o, ok := c.body()
	if !ok {
		return
	}
	a := chassis.Account{Enabled: true}
	for _, must := range []string{"UserName", "Password", "RoleId"} {
		if v, _ := o[must].(string); v == "" {
			c.fail("PropertyMissing", must)
			return
		}
	}
	if !c.fill(&a, o) || !c.keep(a) {
		return
	}
	for _, x := range c.s.c.Accounts() {
		if x.Username == a.Username {
			c.w.Header().Set("Location", joinURI("AccountService", "Accounts", c.s.accountID(x)))
		}
	}
	c.done201()
}

func (c *call) done201() {
	c.send(http.StatusCreated, obj{"@Message.ExtendedInfo": []obj{c.s.info(findMessage("Success"))}})
}

// keep stores an account; when it cannot be it has answered.
func (c *call) keep(a chassis.Account) bool {
	err := c.s.c.SetAccount(a)
	switch {
	case err == nil:
		return true
	case errors.Is(err, chassis.ErrAccount) && slices.ContainsFunc(c.s.c.Accounts(), func(x chassis.Account) bool { return x.Username == a.Username }):
		c.fail("ResourceAlreadyExists", "ManagerAccount", "UserName", a.Username)
	default:
		c.fail("CreateLimitReachedForResource")
	}
	return false
}

func patchAccount(c *call) {
	a, found := c.account()
	if !found {
		c.missing()
		return
	}
	o, ok := c.body()
	if !ok {
		return
	}
	if c.s.p.Accounts == "slots" && a.ID == 1 && a.Username == "" { // reserved on iDRAC
		c.fail("PropertyNotWritable", "UserName")
		return
	}
	a.Password = "" // kept unless a new one comes
	if !c.fill(&a, o) || !c.keep(a) {
		return
	}
	c.done(c.s.p.PatchStatus)
}

func deleteAccount(c *call) {
	a, found := c.account()
	switch {
	case !found:
		c.missing()
	case c.s.p.Accounts == "slots":
		c.fail("OperationNotAllowed")
	case a.ID == c.who.ID:
		c.fail("ResourceInUse")
	default:
		a.Username = ""
		if c.keep(a) {
			c.done(c.s.p.PatchStatus)
		}
	}
}
