// What holds for all masked addresses of the organization together.
import { useQuery } from "@tanstack/react-query";
import { maskedSettings } from "../../api/masked-queries.ts";
import { MaskedSettingsForm } from "../../forms/masked/masked-settings.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Loaded } from "../../ui/states.tsx";
import { MaskedNav } from "./nav.tsx";

export function MaskedSettingsPage() {
  const query = useQuery(maskedSettings);
  return (
    <>
      <PageHead title="Masked addresses" />
      <MaskedNav />
      <div className="panel">
        <Loaded of={query}>{(settings) => <MaskedSettingsForm key={settings.updated_at} settings={settings} />}</Loaded>
      </div>
    </>
  );
}
