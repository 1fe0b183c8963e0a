// How one signs in: name, password, second factor, and where one is signed in.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type PeopleSchemas, people, take } from "../api/client.ts";
import { sessions } from "../api/people.ts";
import { ChangeName } from "../forms/change-name.tsx";
import { ChangePassword } from "../forms/change-password.tsx";
import { Passkeys } from "../forms/passkeys.tsx";
import { SecondFactor } from "../forms/second-factor.tsx";
import { useAct } from "../lib/act.ts";
import { sayBrowser } from "../lib/browsers.ts";
import { useOwn } from "../lib/own.ts";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { SettingsHead } from "../ui/settings-head.tsx";
import { Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";

export function SecurityPage() {
  const { person } = useOwn();
  return (
    <>
      <SettingsHead title="Security" />
      <div className="stack">
        <section className="panel pad settings">
          <div>
            <h2>You</h2>
            <p className="dim">{person.email}</p>
          </div>
          <ChangeName person={person} />
        </section>
        <section className="panel pad settings">
          <div>
            <h2>Password</h2>
            <p className="dim">A new one ends your other sessions.</p>
          </div>
          <ChangePassword person={person} />
        </section>
        <section className="panel pad settings">
          <div>
            <h2>Second factor</h2>
            <p className="dim">A code of an app on your telephone, besides the password.</p>
          </div>
          <SecondFactor person={person} />
        </section>
        <section className="panel pad settings">
          <div>
            <h2>Passkeys</h2>
            <p className="dim">Your device or password manager lets you in, without password and code.</p>
          </div>
          <Passkeys />
        </section>
        <Sessions />
      </div>
    </>
  );
}

type Listed = PeopleSchemas["ListedSession"];

function Sessions() {
  const list = useQuery(sessions);
  const [isAsked, ask] = useState(false);
  const ending = useAct({
    run: ({ id }: Listed) => take(people.DELETE("/dashboard/api/sessions/{id}", { params: { path: { id } } })),
    refresh: [["sessions"]],
    done: () => "That session has ended.",
  });
  const everywhere = useAct({
    run: () => take(people.POST("/dashboard/api/sign-out-everywhere")),
    refresh: [["session"]],
    done: () => "You are signed out everywhere.",
  });
  return (
    <section className="panel">
      <div className="pad flex items-center justify-between gap-3">
        <div>
          <h2>Where you are signed in</h2>
          <p className="dim">A session ends 12 hours after its last use, and after 30 days.</p>
        </div>
        <Button onClick={() => ask(true)}>Sign out everywhere</Button>
      </div>
      <Loaded of={list} rows={2}>
        {(page) => (
          <table className="table border-t border-line">
            <caption className="sr-only">Sessions, the one used last first</caption>
            <thead>
              <tr>
                <th>Browser</th>
                <th className="hide-s w-[24%]">Address</th>
                <th className="r hide-s w-[150px]">Since</th>
                <th className="r w-[110px] sm:w-[150px]">Last used</th>
                <th className="w-[100px]">
                  <span className="sr-only">Acts</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {page.sessions.map((one) => (
                <tr key={one.id}>
                  <td title={one.user_agent}>{sayBrowser(one.user_agent)}</td>
                  <td className="hide-s">
                    <code>{one.ip}</code>
                  </td>
                  <td className="r dim hide-s">
                    <When at={one.created_at} />
                  </td>
                  <td className="r dim">
                    <When at={one.seen_at} as="relative" />
                  </td>
                  <td className="r">
                    {one.is_current ? (
                      <Tag tone="good">Here</Tag>
                    ) : (
                      <Button
                        look="quiet"
                        onClick={() => ending.mutate(one)}
                        aria-label={`End the session from ${one.ip}`}
                      >
                        End
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
      <Confirm
        title="Sign out everywhere?"
        act="Sign out everywhere"
        open={isAsked}
        busy={everywhere.isPending}
        close={() => ask(false)}
        confirm={() => everywhere.mutate(undefined)}
      >
        All your sessions end, this one included. API keys go on working.
      </Confirm>
    </section>
  );
}
