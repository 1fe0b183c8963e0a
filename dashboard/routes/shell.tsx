// What stands around every page: navigation, keys, theme, news. It asks who is there; without anybody it says so in place of the page.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { me } from "../api/queries.ts";
import { sayError } from "../api/say-error.ts";
import { listenToKeys, PLACES } from "../lib/keys.ts";
import { chooseTheme, type Theme, useTheme } from "../lib/theme.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Failed } from "../ui/states.tsx";
import { Toasts } from "../ui/toast.tsx";

const PAGES: readonly { to: string; name: string; icon: IconName }[] = [
  { to: "/", name: "Start", icon: "start" },
  { to: "/emails", name: "E-mails", icon: "emails" },
  { to: "/domains", name: "Domains", icon: "domains" },
  { to: "/suppressions", name: "Suppressions", icon: "suppressions" },
  { to: "/webhooks", name: "Webhooks", icon: "webhooks" },
  { to: "/keys", name: "API keys", icon: "keys" },
];

export function Shell() {
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
          <Link key={to} to={to} activeOptions={{ exact: to === "/" }}>
            <Icon name={icon} />
            {name}
          </Link>
        ))}
        <div className="mt-auto grid gap-2">
          <ThemeChoice />
          <Who />
        </div>
      </nav>
      <main id="page" ref={main} tabIndex={-1}>
        <Guarded />
      </main>
      <Toasts />
      <KeysDialog open={areKeysShown} close={() => showKeys(false)} />
    </div>
  );
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

/** The page, once it is known who asks. */
function Guarded() {
  const who = useQuery(me);
  if (who.error && who.data === undefined)
    return (
      <div className="panel">
        <Failed error={who.error} retry={() => void who.refetch()} />
      </div>
    );
  return <Outlet />;
}

function Brand() {
  return (
    <span className="inline-flex items-center gap-2 text-ink">
      <img src="/icon.svg" alt="" width="22" height="22" />
      Postern
    </span>
  );
}

function Who() {
  const { data, error } = useQuery(me);
  const name = data?.organization.name ?? (error ? sayError(error).title : "");
  return (
    <div className="border-t border-line px-2 pt-3 pb-1 text-[13px]">
      <div className="truncate" title={name}>
        {name}
      </div>
      <div className="dim">{data && (data.environment === "live" ? `${data.organization.plan} plan` : "test key")}</div>
    </div>
  );
}

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function ThemeChoice() {
  const theme = useTheme();
  return (
    <Button look="quiet" className="justify-start" onClick={() => chooseTheme(NEXT_THEME[theme])}>
      <Icon name="sun" />
      Theme: {theme}
    </Button>
  );
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
      <div className="acts">
        <Button onClick={close}>Close</Button>
      </div>
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
