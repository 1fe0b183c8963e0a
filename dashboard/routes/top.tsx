// Around every page: the news; and unless it is one for people who are not in yet, somebody must be signed in.
import { Outlet, useRouterState } from "@tanstack/react-router";
import { Toasts } from "../ui/toast.tsx";
import { SignedIn } from "./signed-in.tsx";

const OPEN = new Set(["/sign-in", "/welcome", "/invitation", "/join", "/sign-up", "/reset"]);

export function Top() {
  // By the page that is shown: the address is another one already while the next page is on its way.
  const isOpen = useRouterState({ select: ({ matches }) => OPEN.has(matches.at(-1)?.pathname ?? "") });
  return (
    <>
      {isOpen ? <Outlet /> : <SignedIn />}
      <Toasts />
    </>
  );
}
