// What an organization in review still lacks, and what works meanwhile.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { anyEmail, domains } from "../api/queries.ts";

const LOOK_MS = 5_000;

export function ReviewPanel() {
  const owned = useQuery({ ...domains, refetchInterval: LOOK_MS });
  const tried = useQuery({ ...anyEmail({}), refetchInterval: LOOK_MS });
  const isVerified = owned.data?.domains.some(({ verified }) => verified) ?? false;
  return (
    <section className="panel why warn" aria-labelledby="review">
      <span />
      <div className="body">
        <h2 id="review">Live sending waits for the review</h2>
        <p>
          The operator of this installation looks at each new organization, and at what it wants to send. Test keys work
          meanwhile: what they send is checked and listed, and nothing leaves.
        </p>
        <ul className="lacks">
          <Lack done={isVerified}>
            <Link to="/domains">A domain whose records are found</Link>
          </Lack>
          <Lack done={(tried.data?.total ?? 0) > 0}>
            <Link to="/emails" search={{}}>
              A mail sent with a test key
            </Link>
          </Lack>
          <Lack done={false}>The operator’s approval</Lack>
        </ul>
      </div>
    </section>
  );
}

function Lack({ done, children }: { done: boolean; children: ReactNode }) {
  return (
    <li className={done ? "done" : ""}>
      <span className="mark" aria-hidden="true">
        {done ? "✓" : ""}
      </span>
      <span>
        {children}
        <span className={done ? "sr-only" : "dim"}>{done ? " (done)" : " · missing"}</span>
      </span>
    </li>
  );
}
