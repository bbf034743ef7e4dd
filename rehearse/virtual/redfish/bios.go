// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

func getBIOS(c *call) obj {
	current, _ := c.s.c.BIOS()
	here := joinURI("Systems", c.s.p.System, "Bios")
	return obj{"@odata.type": "#Bios.v1_2_0.Bios", "Id": "Bios", "Name": "BIOS Configuration", "AttributeRegistry": c.s.p.Registry,
		"Attributes": showAttributes(current),
		"@Redfish.Settings": obj{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": obj{"@odata.id": here + "/" + c.s.p.Settings},
			"SupportedApplyTimes": []string{"OnReset"}},
		"Actions": obj{"#Bios.ResetBios": obj{"target": here + "/Actions/Bios.ResetBios"}}}
}

// showAttributes shows a map of settings, never as null.
func showAttributes(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// getSettings is what waits for the next boot.
func getSettings(c *call) obj {
	if c.args[0] != c.s.p.Settings {
		return nil
	}
	_, pending := c.s.c.BIOS()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	all := maps.Clone(showAttributes(pending))
	maps.Copy(all, c.s.staged)
	return obj{"@odata.type": "#Bios.v1_2_0.Bios", "Id": c.s.p.Settings, "Name": "BIOS Pending Configuration",
		"AttributeRegistry": c.s.p.Registry, "Attributes": all}
}

// patchSettings keeps settings for the next boot. Where settings are jobs, a
// request that says when to apply them makes the job, and one that does not
// leaves them without until a job is posted.
func patchSettings(c *call) {
	if c.args[0] != c.s.p.Settings {
		c.missing()
		return
	}
	o, ok := c.body()
	if !ok || !c.only(o, "Attributes") {
		return
	}
	raw, has, ok := c.object(o, "Attributes")
	if !ok {
		return
	}
	if !has {
		c.fail("PropertyMissing", "Attributes")
		return
	}
	want, ok := c.settings(raw)
	if !ok {
		return
	}
	if !c.s.p.ConfigJobs {
		if err := c.s.c.SetBIOS(want); err != nil {
			c.fail("InternalError")
			return
		}
		c.done(c.s.p.PatchStatus)
		return
	}
	if _, pending := c.s.c.BIOS(); pending != nil {
		c.failOwn(http.StatusBadRequest, "IDRAC.2.8.SYS011", "Pending configuration values are already committed, unable to perform another set operation.")
		return
	}
	c.s.stage(want)
	if _, now := o["@Redfish.SettingsApplyTime"]; !now {
		c.done(http.StatusOK)
		return
	}
	c.commit()
}

// settings checks attributes against the board's; when they are wrong it has
// answered.
func (c *call) settings(raw obj) (map[string]string, bool) {
	current, _ := c.s.c.BIOS()
	want := make(map[string]string, len(raw))
	for _, k := range slices.Sorted(maps.Keys(raw)) {
		if _, ok := current[k]; !ok {
			c.fail("PropertyUnknown", k)
			return nil, false
		}
		switch v := raw[k].(type) {
		case string:
			want[k] = v
		case float64, bool:
			b, _ := json.Marshal(v)
			want[k] = string(b)
		default:
			c.fail("PropertyValueTypeError", fmt.Sprint(v), k)
			return nil, false
		}
	}
	return want, true
}

// stage keeps settings that have no job yet.
func (s *server) stage(want map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.staged == nil {
		s.staged = map[string]string{}
	}
	maps.Copy(s.staged, want)
}

// commit makes the job for what is staged and answers with it.
func (c *call) commit() {
	c.s.mu.Lock()
	want := c.s.staged
	c.s.staged = nil
	c.s.mu.Unlock()
	if len(want) == 0 {
		c.failOwn(http.StatusBadRequest, "IDRAC.2.8.SYS012", "No pending configuration values to commit.")
		return
	}
	if err := c.s.c.SetBIOS(want); err != nil {
		c.fail("InternalError")
		return
	}
	t := c.s.newTask("Configure: BIOS.Setup.1-1")
	c.s.setTask(t, func(t *task) { t.config, t.state = true, "Pending" })
	c.w.Header().Set("Location", c.s.taskURI(t.id))
	c.send(http.StatusAccepted, obj{"@Message.ExtendedInfo": []obj{c.s.info(findMessage("Success"))}})
}

// resetBIOS puts the settings back to what they were at the factory, at the
// next boot.
func resetBIOS(c *call) {
	if err := c.s.c.SetBIOS(c.s.c.Identity().BIOS); err != nil {
		c.fail("InternalError")
		return
	}
	c.done(c.s.p.PatchStatus)
}

// attributeRegistry describes the BIOS settings; values are free, since the
// board does not say what else they could be.
func (s *server) attributeRegistry() obj {
	current, _ := s.c.BIOS()
	entries := []obj{}
	for _, k := range slices.Sorted(maps.Keys(current)) {
		entries = append(entries, obj{"AttributeName": k, "DisplayName": k, "Type": "String", "ReadOnly": false, "ResetRequired": true,
			"CurrentValue": current[k], "DefaultValue": s.c.Identity().BIOS[k]})
	}
	return obj{"@odata.type": "#AttributeRegistry.v1_3_6.AttributeRegistry", "Id": s.p.Registry, "Name": "BIOS Attribute Registry",
		"Language": "en", "OwningEntity": s.manufacturer(), "RegistryVersion": "1.0.0",
		"SupportedSystems": []obj{{"ProductName": s.model(), "SystemId": s.p.System, "FirmwareVersion": s.biosFirmware().Version}},
		"RegistryEntries":  obj{"Attributes": entries, "Dependencies": []obj{}, "Menus": []obj{}}}
}
