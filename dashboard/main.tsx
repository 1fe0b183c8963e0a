// The dashboard's beginning: theme, cache of what was read, router. Pages come in files of their own when they are opened.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Declined } from "./api/client.ts";
import { applyTheme } from "./lib/theme.ts";
import { router } from "./routes/router.tsx";

const RETRIES = 2;

applyTheme();
const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 5_000, retry: (failures, error) => failures < RETRIES && isPassing(error) },
  },
});

/** No answer, or a fault of the server: worth asking again. */
function isPassing(error: unknown): boolean {
  return error instanceof Declined && (error.status === 0 || error.status >= 502);
}

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
