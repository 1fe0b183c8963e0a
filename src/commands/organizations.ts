// `postern organizations` and `postern settings`: who may use this installation, and how much.
import type { Command } from "commander";
import {
  changeOrganization,
  changeSetting,
  createOrganization,
  listOrganizations,
  type OrganizationOptions,
  organizationNamed,
  organizationSetting,
  organizationTable,
  type SettingName,
  showOrganization,
} from "../accounts/accounts.ts";
import { changesBetween, noteCommand, ORGANIZATION_FIELDS } from "../audit/audit.ts";
import { addMoveCommands } from "./move-organization.ts";
import { withWorld } from "./with-world.ts";

/** Puts both into the program. */
export function addOrganizationCommands(program: Command): void {
  program
    .command("settings")
    .description("settings of an organization: inbound_retention_days, test_keys, warming_auto_start")
    .argument("<name>")
    .argument("<value>", 'the value, or "default"')
    .option("--organization <id>", "its id; without it the first organization")
    .option("--json", "one JSON object")
    .action(changeSettingCommand);
  const organizations = program
    .command("organizations")
    .description("the organizations that use this installation: state, plan, rate and quota");
  organizations
    .command("list")
    .description("every organization with its state, plan and limits")
    .option("--json", "one JSON object")
    .action(listOrganizationsCommand);
  organizations
    .command("create")
    .description("create an organization and print a live and a test key once")
    .requiredOption("--name <name>", "its new name")
    .option("--plan <plan>", "free, starter, growth, scale or enterprise (the default)")
    .option("--state <state>", "pending_review, active (the default) or suspended")
    .option("--requests-per-second <n>", "its own rate instead of the plan's")
    .option("--monthly-quota <n>", "its own quota of recipients a month instead of the plan's")
    .option("--json", "one JSON object")
    .action(createOrganizationCommand);
  organizations
    .command("set")
    .description("change an organization, from its next request on")
    .argument("<id>", "its id: `postern organizations list`")
    .option("--state <state>", "pending_review (live sends 403), active, or suspended (sends 403, queued mail waits)")
    .option("--plan <plan>", "free, starter, growth, scale or enterprise")
    .option("--requests-per-second <n>", 'a rate of its own, or "default"')
    .option("--monthly-quota <n>", 'recipients a month of its own, or "default"')
    .option("--name <name>", "its new name")
    .option("--json", "one JSON object")
    .action(changeOrganizationCommand);
  addMoveCommands(organizations);
}

type SettingOptions = { organization?: string; json?: boolean };

function changeSettingCommand(name: string, text: string, { organization, json }: SettingOptions): Promise<void> {
  return withWorld(async (world) => {
    const org_id = await organizationNamed(world, organization ?? null);
    const before = await organizationSetting(world.db, org_id, name as SettingName);
    const value = await changeSetting(world, org_id, name, text);
    const changes = changesBetween({ [name]: before }, { [name]: value }, [name]);
    await noteCommand(world, org_id, { command: "settings", target: { setting: name }, changes });
    console.log(json ? JSON.stringify({ organization_id: org_id, name, value }) : `${name} is ${text} now.`);
  });
}

function listOrganizationsCommand(options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const organizations = await listOrganizations(world);
    console.log(options.json ? JSON.stringify({ organizations }) : organizationTable(organizations));
  });
}

function createOrganizationCommand({ json, ...options }: OrganizationOptions & { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const created = await createOrganization(world, options);
    await noteCommand(world, created.organization.id, { command: "organizations create" });
    if (json) return console.log(JSON.stringify(created));
    const { organization, live_key, test_key } = created;
    const { id, name, plan, state } = organization;
    console.log(
      `The organization "${name}" was created (${plan}, ${state}). These keys are shown once.\n` +
        `  id        ${id}\n  live key  ${live_key}\n  test key  ${test_key}`,
    );
  });
}

type ChangeOptions = OrganizationOptions & { json?: boolean };

function changeOrganizationCommand(id: string, { json, ...options }: ChangeOptions): Promise<void> {
  return withWorld(async (world) => {
    const before = await showOrganization(world, id);
    const organization = await changeOrganization(world, id, options);
    const changes = changesBetween(before ?? organization, organization, ORGANIZATION_FIELDS);
    await noteCommand(world, organization.id, { command: "organizations set", fields: Object.keys(options), changes });
    console.log(json ? JSON.stringify({ organization }) : organizationTable([organization]));
  });
}
