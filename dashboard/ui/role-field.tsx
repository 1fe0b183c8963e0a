// A role, with what it may do.
import { useState } from "react";
import type { PeopleSchemas } from "../api/client.ts";
import { Field } from "./field.tsx";

type Role = PeopleSchemas["Role"];
const ROLES: Record<Role, string> = {
  owner: "Everything, people included.",
  admin: "Everything but people.",
  developer: "Everything but people and live keys.",
  viewer: "Sees, and changes nothing. Bodies of messages only where allowed.",
};

/** A select called `role`. */
export function RoleField({ chosen = "developer", problem }: { chosen?: Role; problem?: string }) {
  const [role, choose] = useState<Role>(chosen);
  return (
    <Field label="Role" help={ROLES[role]} problem={problem}>
      {(bound) => (
        <select {...bound} name="role" value={role} onChange={(event) => choose(readRole(event.target.value))}>
          {Object.keys(ROLES).map((name) => (
            <option key={name} value={name}>
              {name.charAt(0).toUpperCase() + name.slice(1)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function readRole(text: unknown): Role {
  return (Object.keys(ROLES) as Role[]).find((role) => role === text) ?? "viewer";
}
