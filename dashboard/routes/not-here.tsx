// Where an address leads nowhere, and where a page fell over.
import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { PageHead } from "../ui/page.tsx";
import { Empty, Failed } from "../ui/states.tsx";

const toEmails = (
  <Link to="/emails" className="btn">
    Go to e-mails
  </Link>
);

export function NotHere() {
  return (
    <>
      <PageHead title="Not here" />
      <div className="panel">
        <Empty title="There is no page at this address" acts={toEmails}>
          The link may be old, or cut off.
        </Empty>
      </div>
    </>
  );
}

export function PageFault({ error }: ErrorComponentProps) {
  return (
    <main>
      <div className="panel">
        <Failed error={error} />
      </div>
    </main>
  );
}
