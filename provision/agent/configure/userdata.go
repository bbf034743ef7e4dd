// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"io/fs"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// userData leaves the user data of the site for the first start of the installed system: a
// script to ironrail's agent, settings to cloud-init. What a configuration before this one has
// left goes.
func (s settings) userData(root rootfs.Root) error {
	stale := []string{userdata.ScriptFile, userdata.RecordFile, userdata.UnitFile, userdata.UnitWanted, userdata.SeedUserData, userdata.SeedMetaData, userdata.CloudSettings}
	for _, name := range stale {
		if err := rootfs.Remove(root, name); err != nil {
			return err
		}
	}
	switch userdata.FormOf(s.UserData) {
	case userdata.Script:
		return s.userScript(root)
	case userdata.CloudConfig:
		return s.cloudConfig(root)
	}
	return nil
}

// userScript writes a script with the unit that has the agent run it.
func (s settings) userScript(root rootfs.Root) error {
	if err := rootfs.WriteText(root, userdata.ScriptFile, s.UserData, 0o700); err != nil {
		return err
	}
	if err := rootfs.WriteText(root, userdata.UnitFile, userdata.UnitText, 0o644); err != nil {
		return err
	}
	return rootfs.Link(root, "/"+userdata.UnitFile, userdata.UnitWanted)
}

// cloudConfig seeds the data source NoCloud of the image's cloud-init.
func (s settings) cloudConfig(root rootfs.Root) error {
	if !rootfs.Exists(root, userdata.CloudProgram) {
		return errkind.New(errkind.NotFound, "the image has no cloud-init, which the user data of this node is for").
			Do("Add cloud-init to the packages of the image, or write a script as user_data (#!/bin/sh).")
	}
	if err := rootfs.Remove(root, userdata.CloudOff); err != nil {
		return err
	}
	for _, f := range []struct {
		name, text string
		mode       fs.FileMode
	}{
		{userdata.CloudSettings, userdata.CloudText, 0o644},
		{userdata.SeedMetaData, userdata.MetaData(s.Hostname, s.UserData), 0o644},
		{userdata.SeedUserData, s.UserData, 0o600},
	} {
		if err := rootfs.WriteText(root, f.name, f.text, f.mode); err != nil {
			return err
		}
	}
	return nil
}
