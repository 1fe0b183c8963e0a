// Around every page: the news; and unless it is one for people who are not in yet, somebody must be signed in.
import { Outlet, useRouterState } from "@tanstack/react-router";
import { Toasts } from "../ui/toast.tsx";
import { SignedIn } from "./signed-in.tsx";

const OPEN = new Set(["/sign-in", "/welcome", "/invitation", "/join", "/sign-up", "/reset"]);

export function Top() {
  const isOpen = useRouterState({ select: ({ location }) => OPEN.has(location.pathname) });
  return (
    <>
      {isOpen ? <Outlet /> : <SignedIn />}
      <Toasts />
    </>
  );
}
