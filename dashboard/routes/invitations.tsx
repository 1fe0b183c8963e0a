// Invitations that nobody used yet.
import { useQuery } from "@tanstack/react-query";
import { people as asked, type PeopleSchemas, take } from "../api/client.ts";
import { invitations } from "../api/people.ts";
import { useAct } from "../lib/act.ts";
import type { Own } from "../lib/own.ts";
import { Button } from "../ui/button.tsx";
import { Loaded } from "../ui/states.tsx";
import { When } from "../ui/when.tsx";

type Invitation = PeopleSchemas["Invitation"];

export function Invitations({ organization }: Pick<Own, "organization">) {
  const list = useQuery(invitations(organization.id));
  const taking = useAct({
    run: ({ id }: Invitation) =>
      take(
        asked.DELETE("/dashboard/api/organizations/{org_id}/invitations/{id}", {
          params: { path: { org_id: organization.id, id } },
        }),
      ),
    refresh: [["people"]],
    done: (_out, { email }) => `The invitation of ${email} works no longer.`,
  });
  return (
    <section className="panel">
      <Loaded of={list} rows={2}>
        {(page) =>
          page.invitations.length === 0 ? (
            <p className="pad dim">No invitation waits to be used.</p>
          ) : (
            <table className="table">
              <caption className="sr-only">Invitations that nobody used yet</caption>
              <thead>
                <tr>
                  <th>Invited</th>
                  <th className="hide-s w-[130px]">Role</th>
                  <th className="r hide-s w-[150px]">Works until</th>
                  <th className="w-[124px]">
                    <span className="sr-only">Acts</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {page.invitations.map((invitation) => (
                  <tr key={invitation.id}>
                    <td title={invitation.email}>
                      {invitation.email}
                      <div className="show-s dim truncate text-[12.5px]">
                        {invitation.role}, until <When at={invitation.expires_at} />
                      </div>
                    </td>
                    <td className="hide-s">{invitation.role}</td>
                    <td className="r dim hide-s">
                      <When at={invitation.expires_at} />
                    </td>
                    <td className="r">
                      <Button
                        look="quiet"
                        aria-label={`Take back the invitation of ${invitation.email}`}
                        onClick={() => taking.mutate(invitation)}
                      >
                        Take back
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
    </section>
  );
}
