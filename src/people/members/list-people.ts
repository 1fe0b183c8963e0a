// The list that `postern people list` prints.
import { organizationAccounts } from "../../accounts/accounts.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";

export type DescribedPerson = {
  id: string;
  email: string;
  name: string;
  is_operator: boolean;
  created_at: Date;
  organizations: { id: string; name: string; role: string }[];
};

/** Everybody, by address, with their organizations and roles; and the same as lines. */
export async function describePeople(world: Pick<World, "db">): Promise<{ people: DescribedPerson[]; text: string }> {
  const rows = await queries.listPeople(world.db);
  const ids = [...new Set(rows.flatMap(({ memberships }) => memberships.map(({ org_id }) => org_id)))];
  const known = await organizationAccounts(world, ids);
  const people = rows.map(({ memberships, ...person }) => ({
    ...person,
    organizations: memberships.map(({ org_id, role }) => ({ id: org_id, name: known.get(org_id)?.name ?? "", role })),
  }));
  return { people, text: people.map(lineOf).join("\n") || "Nobody yet: `postern people invite` prints a set-up link." };
}

function lineOf({ email, name, is_operator, organizations }: DescribedPerson): string {
  const where = organizations.map((organization) => `${organization.name} (${organization.role})`);
  return [email, name, is_operator ? "operator" : "", where.join(", ")].filter((part) => part !== "").join("  ");
}
