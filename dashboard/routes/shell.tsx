// What stands around every page of somebody who is signed in: navigation, keys, who one is.
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import type { Session } from "../api/people.ts";
import { listenToKeys, PLACES } from "../lib/keys.ts";
import { Brand } from "../ui/brand.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Who } from "./who.tsx";

const PAGES: readonly { to: string; name: string; icon: IconName }[] = [
  { to: "/", name: "Start", icon: "start" },
  { to: "/emails", name: "E-mails", icon: "emails" },
  { to: "/inbound", name: "Inbound", icon: "inbound" },
  { to: "/masked", name: "Masked", icon: "masked" },
  { to: "/domains", name: "Domains", icon: "domains" },
  { to: "/templates", name: "Templates", icon: "templates" },
  { to: "/suppressions", name: "Suppressions", icon: "suppressions" },
  { to: "/webhooks", name: "Webhooks", icon: "webhooks" },
  { to: "/keys", name: "API keys", icon: "keys" },
  { to: "/settings/organization", name: "Settings", icon: "settings" },
];

export function Shell({ who }: { who: Session }) {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [areKeysShown, showKeys] = useState(false);
  const navigate = useNavigate();
  const pathname = useRouterState({ select: ({ location }) => location.pathname });
  useEffect(() => listenToKeys({ go: (to) => void navigate({ to }), showKeys: () => showKeys(true) }), [navigate]);
  const main = useFocusOnPage(pathname);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when the page changes
  useEffect(() => setMenuOpen(false), [pathname]);
  return (
    <div className="app">
      <a href="#page" className="skip">
        Skip to the page
      </a>
      <header className="bar">
        <Button
          look="quiet"
          className="square"
          aria-label="Menu"
          aria-expanded={isMenuOpen}
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name="menu" />
        </Button>
        <Brand />
      </header>
      <nav className={isMenuOpen ? "side open" : "side"} aria-label="Pages">
        <div className="hide-s row mb-2 font-semibold">
          <Brand />
        </div>
        {PAGES.map(({ to, name, icon }) => (
          <Link key={to} to={to} activeOptions={{ exact: to === "/" }} {...(isWithin(to, pathname) ? HERE : {})}>
            <Icon name={icon} />
            {name}
          </Link>
        ))}
        {who.person.is_operator && (
          <Link to="/operator/organizations" search={{}} {...(pathname.startsWith("/operator/") ? HERE : {})}>
            <Icon name="operator" />
            Operator
          </Link>
        )}
        <Who who={who} />
      </nav>
      <main id="page" ref={main} tabIndex={-1}>
        <Outlet />
      </main>
      <KeysDialog open={areKeysShown} close={() => showKeys(false)} />
    </div>
  );
}

const HERE = { "aria-current": "page" } as const;

/** The settings are several pages behind one name. */
function isWithin(to: string, pathname: string): boolean {
  return to.startsWith("/settings/") && pathname.startsWith("/settings/");
}

/** After a change of page the focus is on it, not on what is gone. */
function useFocusOnPage(pathname: string) {
  const main = useRef<HTMLElement>(null);
  const before = useRef(pathname);
  useEffect(() => {
    if (before.current !== pathname) main.current?.focus({ preventScroll: true });
    before.current = pathname;
  }, [pathname]);
  return main;
}

function KeysDialog({ open, close }: { open: boolean; close: () => void }) {
  const places = Object.entries(PLACES).filter(([, { to }]) => PAGES.some((page) => page.to === to));
  return (
    <Dialog title="Keys" open={open} close={close}>
      <dl className="mt-3 grid grid-cols-[90px_1fr] gap-y-2">
        <Key keys={["/"]} does="Search this list" />
        {places.map(([key, { name }]) => (
          <Key key={key} keys={["g", key]} does={`Go to ${name}`} />
        ))}
        <Key keys={["?"]} does="Show these keys" />
        <Key keys={["Esc"]} does="Close what is open" />
      </dl>
      <DialogActs close={close} />
    </Dialog>
  );
}

function Key({ keys, does }: { keys: string[]; does: string }) {
  return (
    <>
      <dt className="flex gap-1">
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </>
  );
}
