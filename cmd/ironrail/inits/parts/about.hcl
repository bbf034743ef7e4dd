# Change it block by block and run `check` after each. Words without quotes, such as
# network.boot, refer to other blocks; every *.hcl file of the folder is read, and
# their order means nothing. docs/language.md has every block and attribute.

locals {
  # The vendor's list, as it comes with the pallet. Serials and MACs are made up:
  # 02:... is no vendor's. ironrail compares the real ones before it erases anything.
  shipped = csvdecode(file("manifest.csv")) # rack,unit,serial,bmc_mac,boot_mac
