// The contacts of a masked address. Mail to a contact's reply address reaches the contact, and leaves from the masked address.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { maskedContacts } from "../../api/masked-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { AddContact } from "../../forms/masked/add-contact.tsx";
import { SearchField } from "../../forms/search-field.tsx";
import { useAct } from "../../lib/act.ts";
import type { MaskedAliasView } from "../../lib/masked-filters.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";

const route = getRouteApi("/masked/$id");
type Contact = Schemas["MaskedContact"];

export function Contacts({ id }: { id: string }) {
  const view = route.useSearch();
  const navigate = route.useNavigate();
  const [isAdding, add] = useState(false);
  const list = useQuery(maskedContacts(id, view));
  const change = (changed: Partial<MaskedAliasView>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  const adding = (
    <Button changes onClick={() => add(true)}>
      Add a contact
    </Button>
  );
  return (
    <>
      <div className="filters">
        <SearchField label="Whole address" value={view.email} search={(email) => change({ email })} />
        <Choice
          label="State"
          value={view.blocked === undefined ? undefined : String(view.blocked)}
          pick={(state) => change({ blocked: state === undefined ? undefined : state === "true" })}
        >
          <option value="true">Blocked</option>
          <option value="false">Not blocked</option>
        </Choice>
        <span className="grow" />
        {adding}
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list} rows={5}>
          {(page) =>
            page.contacts.length === 0 ? (
              <Empty title="No contact here">
                Everybody who writes to the address becomes a contact. Add one to write first.
              </Empty>
            ) : (
              <Rows id={id} page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
      <AddContact id={id} open={isAdding} close={() => add(false)} />
    </>
  );
}

function Rows({ id, page, readAtMs }: { id: string; page: Schemas["MaskedContactList"]; readAtMs: number }) {
  const view = route.useSearch();
  const [leaving, forget] = useState<Contact | null>(null);
  const forgetting = useAct({
    run: ({ id: contact_id }: Contact) =>
      take(v1.DELETE("/v1/masked/aliases/{id}/contacts/{contact_id}", { params: { path: { id, contact_id } } })),
    refresh: [["masked", "alias", id]],
    done: (_out, { email }) => {
      forget(null);
      return `${email} is forgotten.`;
    },
  });
  return (
    <>
      {page.contacts.map((contact) => (
        <One key={contact.id} id={id} contact={contact} forget={() => forget(contact)} />
      ))}
      <ListFoot page={page} one="contact" readAtMs={readAtMs}>
        {page.contacts.length === PAGE_ROWS && (
          <Link
            to="/masked/$id"
            params={{ id }}
            search={{ ...view, after: page.contacts.at(-1)?.id }}
            className="btn quiet"
          >
            Older
          </Link>
        )}
      </ListFoot>
      <Confirm
        title={`Forget ${leaving?.email}?`}
        act="Forget the contact"
        open={leaving !== null}
        busy={forgetting.isPending}
        close={() => forget(null)}
        confirm={() => leaving && forgetting.mutate(leaving)}
      >
        The reply address leads nowhere any more. When they write again, they become a contact with another one.
      </Confirm>
    </>
  );
}

function One({ id, contact, forget }: { id: string; contact: Contact; forget: () => void }) {
  const blocking = useAct({
    run: (blocked: boolean) =>
      take(
        v1.PATCH("/v1/masked/aliases/{id}/contacts/{contact_id}", {
          params: { path: { id, contact_id: contact.id } },
          body: { blocked },
        }),
      ),
    refresh: [["masked", "alias", id]],
    done: (_out, blocked) => (blocked ? `${contact.email} is blocked.` : `${contact.email} comes through again.`),
  });
  return (
    <div className="contact">
      <div className="min-w-0">
        <div className="truncate">
          {contact.name && <b className="font-semibold">{contact.name} </b>}
          {contact.email} {contact.blocked && <Tag tone="bad">Blocked</Tag>}
        </div>
        <div className="copy">
          <code className="dim">{contact.reply_address}</code>
          <CopyButton text={contact.reply_address} what={`the reply address of ${contact.email}`} />
        </div>
      </div>
      <div className="dim num text-[12.5px]">
        {contact.received.toLocaleString("en")} received · {contact.sent.toLocaleString("en")} sent
      </div>
      <div className="flex">
        <Button changes look="quiet" onClick={() => blocking.mutate(!contact.blocked)} disabled={blocking.isPending}>
          {contact.blocked ? "Unblock" : "Block"}
        </Button>
        <Button changes look="quiet" onClick={forget} aria-label={`Forget ${contact.email}`}>
          Forget
        </Button>
      </div>
    </div>
  );
}
