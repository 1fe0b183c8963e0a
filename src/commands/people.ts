// `postern people`: who may sign in to the dashboard.
import type { Command } from "commander";
import { organizationNamed } from "../accounts/accounts.ts";
import { noteCommand } from "../audit/audit.ts";
import { describePeople, makeResetLink, makeSetUpLink } from "../people/people.ts";
import { withWorld } from "./with-world.ts";

/** Puts them into the program. */
export function addPeopleCommands(program: Command): void {
  const people = program.command("people").description("who may sign in to the dashboard");
  people
    .command("list")
    .description("list everybody, with organizations and roles")
    .option("--json", "one JSON object")
    .action(listPeopleCommand);
  people
    .command("invite")
    .description(
      "print a link that makes the first person to use it owner and operator; it works once, within 24 hours",
    )
    .option("--organization <id>", "the id of the organization; without it the first one")
    .option("--json", "one JSON object")
    .action(invitePersonCommand);
  people
    .command("reset")
    .description("print a link with which a person sets a new password")
    .argument("<address>", "the person's e-mail address")
    .option(
      "--second-factors",
      "also turn off the authenticator app and remove the passkeys, for a person who lost them",
    )
    .option("--json", "one JSON object")
    .action(resetPersonCommand);
}

type PeopleOptions = { organization?: string; json?: boolean };

function invitePersonCommand({ organization, json }: PeopleOptions): Promise<void> {
  return withWorld(async (world) => {
    const org_id = await organizationNamed(world, organization ?? null);
    const link = await makeSetUpLink(world, org_id);
    await noteCommand(world, org_id, { command: "people invite" });
    const text = "Who opens this link becomes owner of the organization and operator. It works once, for 24 hours.";
    console.log(json ? JSON.stringify({ link }) : `${text}\n  ${link}`);
  });
}

function resetPersonCommand(email: string, options: { json?: boolean; secondFactors?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const made = await makeResetLink(world, email, options.secondFactors ?? false);
    if (!made) throw new Error(`nobody has the address ${email}; \`postern people list\` shows who there is`);
    // Somebody who sees the link could use it in the person's name.
    const command = options.secondFactors ? "people reset --second-factors" : "people reset";
    const target = { id: made.person_id };
    for (const org_id of made.org_ids) await noteCommand(world, org_id, { command, target });
    const text = "With this link the person sets a new password. It works once, for 24 hours.";
    console.log(options.json ? JSON.stringify({ link: made.link }) : `${text}\n  ${made.link}`);
  });
}

function listPeopleCommand(options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const { people, text } = await describePeople(world);
    console.log(options.json ? JSON.stringify({ people }) : text);
  });
}
