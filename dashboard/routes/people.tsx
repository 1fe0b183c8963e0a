// Who belongs to the organization, with which role; and who is invited. Owners change it.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { people as asked, type PeopleSchemas, take } from "../api/client.ts";
import { members } from "../api/people.ts";
import { ChangeMember } from "../forms/change-member.tsx";
import { Invite } from "../forms/invite.tsx";
import { useAct } from "../lib/act.ts";
import { type Own, useOwn } from "../lib/own.ts";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { SettingsHead } from "../ui/settings-head.tsx";
import { Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";
import { Invitations } from "./invitations.tsx";

type Member = PeopleSchemas["Member"];

export function PeoplePage() {
  const { person, organization } = useOwn();
  const [isInviting, invite] = useState(false);
  const isOwner = organization.role === "owner";
  const list = useQuery(members(organization.id));
  return (
    <>
      <SettingsHead
        title="People"
        acts={
          isOwner && (
            <Button look="primary" onClick={() => invite(true)}>
              Invite somebody
            </Button>
          )
        }
      />
      <div className="stack">
        <section className="panel">
          <Loaded of={list}>{(page) => <Rows people={page.people} own={{ person, organization }} />}</Loaded>
          {!isOwner && <div className="foot">Owners invite people and change roles.</div>}
        </section>
        {isOwner && <Invitations organization={organization} />}
      </div>
      <Invite open={isInviting} close={() => invite(false)} organization={organization} />
    </>
  );
}

function Rows({ people, own }: { people: Member[]; own: Own }) {
  const [changed, change] = useState<Member | null>(null);
  const [leaving, remove] = useState<Member | null>(null);
  const removing = useRemoval(own, () => remove(null));
  const isMe = leaving?.id === own.person.id;
  return (
    <>
      <table className="table">
        <caption className="sr-only">People of this organization</caption>
        <thead>
          <tr>
            <th>Person</th>
            <th className="w-[92px] sm:w-[130px]">Role</th>
            <th className="hide-s w-[150px]">Second factor</th>
            <th className="r hide-s w-[130px]">Since</th>
            <th className="hide-s w-[220px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {people.map((member) => (
            <tr key={member.id}>
              <td title={member.email}>
                {member.name || member.email}
                {member.name && <span className="dim hide-s"> · {member.email}</span>}
                {member.name && <div className="show-s dim truncate text-[12.5px]">{member.email}</div>}
                <div className="show-s -ml-3">
                  <Acts member={member} own={own} change={change} remove={remove} />
                </div>
              </td>
              <td>
                {member.role}
                {member.role === "viewer" && member.sees_bodies && <span className="dim hide-s"> · bodies</span>}
              </td>
              <td className="hide-s">
                <Tag tone={member.has_second_factor ? "good" : "idle"}>{member.has_second_factor ? "On" : "Off"}</Tag>
              </td>
              <td className="r dim hide-s">
                <When at={member.joined_at} />
              </td>
              <td className="r hide-s">
                <Acts member={member} own={own} change={change} remove={remove} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <ChangeMember
        member={changed}
        organization={own.organization}
        close={() => change(null)}
        remove={(member) => {
          change(null);
          remove(member);
        }}
      />
      <Confirm
        title={isMe ? `Leave ${own.organization.name}?` : `Remove ${leaving?.email}?`}
        act={isMe ? "Leave" : "Remove the person"}
        open={leaving !== null}
        busy={removing.isPending}
        close={() => remove(null)}
        confirm={() => leaving && removing.mutate(leaving)}
      >
        {isMe
          ? "You no longer see anything of this organization, from your next request on."
          : "The person no longer sees anything of this organization, from the next request on. The keys they made stay."}
      </Confirm>
    </>
  );
}

type ActsGiven = { member: Member; own: Own; change: (member: Member) => void; remove: (member: Member) => void };

function Acts({ member, own, change, remove }: ActsGiven) {
  const isOwner = own.organization.role === "owner";
  const isMe = member.id === own.person.id;
  return (
    <>
      {isOwner && (
        <Button look="quiet" aria-label={`Change ${member.email}`} onClick={() => change(member)}>
          Change
        </Button>
      )}
      {(isOwner || isMe) && (
        <Button look="quiet" aria-label={isMe ? undefined : `Remove ${member.email}`} onClick={() => remove(member)}>
          {isMe ? "Leave" : "Remove"}
        </Button>
      )}
    </>
  );
}

function useRemoval({ organization, person }: Own, close: () => void) {
  return useAct({
    run: ({ id }: Member) =>
      take(
        asked.DELETE("/dashboard/api/organizations/{org_id}/people/{id}", {
          params: { path: { org_id: organization.id, id } },
        }),
      ),
    refresh: [["people"], ["session"]],
    done: (_out, member) => {
      close();
      if (member.id === person.id) location.assign("/");
      return `${member.email} belongs to ${organization.name} no longer.`;
    },
  });
}
