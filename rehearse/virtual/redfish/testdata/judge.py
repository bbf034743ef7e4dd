"""Drives a Redfish service with sushy and fails on anything unexpected.

Arguments: URL, user, password, paths of the system, the manager and the
firmware component to update.
"""
import sys
import time
import warnings

import sushy

warnings.simplefilter("ignore")
url, user, password, system_path, manager_path, component = sys.argv[1:]


def until(what, reached):
    end = time.time() + 10
    while not reached():
        if time.time() > end:
            sys.exit("not reached: " + what)
        time.sleep(0.01)


auth = sushy.auth.SessionOrBasicAuth(user, password)
root = sushy.Sushy(url, auth=auth, verify=False)
system = root.get_system(system_path)
assert system.power_state == sushy.POWER_STATE_OFF, system.power_state
assert sushy.BOOT_SOURCE_TARGET_PXE in system.get_allowed_system_boot_source_values()

system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE,
                               mode=sushy.BOOT_SOURCE_MODE_UEFI)
system.refresh()
assert system.boot.target == sushy.BOOT_SOURCE_TARGET_PXE, system.boot
assert system.boot.enabled == sushy.BOOT_SOURCE_ENABLED_ONCE, system.boot
assert system.boot.mode == sushy.BOOT_SOURCE_MODE_UEFI, system.boot

system.reset_system(sushy.RESET_ON)


def power(state):
    system.refresh()
    return system.power_state == state


until("on", lambda: power(sushy.POWER_STATE_ON))
system.reset_system(sushy.RESET_FORCE_OFF)
until("off", lambda: power(sushy.POWER_STATE_OFF))

macs = system.ethernet_interfaces.summary
assert list(macs) == ["b8:ce:f6:00:00:00", "b8:ce:f6:00:00:01"] or len(macs) in (0, 2), macs
assert system.processors.summary.count >= 1, system.processors.summary

bios = system.bios
name = sorted(bios.attributes)[0]
try:
    bios.set_attribute(name, "Changed", apply_time=sushy.APPLY_TIME_ON_RESET)
except sushy.exceptions.HTTPError as e:
    if e.status_code != 428:  # sushy sends no If-Match here; some makers demand it
        raise
    root._conn.patch(bios._settings.resource_uri, data={"Attributes": {name: "Changed"}}, headers={"If-Match": "*"})

registries = {f.registry: f for f in root._get_registry_collection().get_members()}
base = [f for k, f in registries.items() if k.startswith("Base.")][0].get_message_registry("en", None)
assert base.messages["ResourceNotFound"].number_of_args == 2, base.messages
attributes = registries[bios._attribute_registry].get_attribute_registry("en", None)
assert attributes.registry_entries.attributes, "no attributes are described"

manager = root.get_manager(manager_path)
assert manager.firmware_version, "no firmware version"
if manager._json.get("VirtualMedia"):
    slot = manager.virtual_media.get_members()[0]
    slot.insert_media("http://10.0.0.1/boot.iso")
    slot.refresh()
    assert slot.inserted and slot.image == "http://10.0.0.1/boot.iso", slot.json
    slot.eject_media()
    slot.refresh()
    assert not slot.inserted

for i in range(8):  # the inventory may be refused now and then
    try:
        firmware = root.get_update_service().firmware_inventory.get_members()
        break
    except sushy.exceptions.AccessError:
        pass
assert len(firmware) >= 3, firmware
target = [f for f in firmware if f.path == component][0]
assert target.updateable and target.version, target.json
monitor = root.get_update_service().simple_update("http://10.0.0.1/fw_5.5.5.bin", targets=[target.path])
until("the update", lambda: root.get_task_service().tasks.get_members()[-1].task_state == sushy.TASK_STATE_COMPLETED)
