import { useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import { ofWorkspace, scope } from '../api/scope.ts'
import type { View } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { go, place } from '../router.ts'
import { Button, Dialog, onSubmit, Text } from './form.tsx'
import { Icon } from './icons.tsx'
import { ProblemNote } from './page.tsx'

/** Filters that the person saved under a name, as tabs above the list. */
export function SavedViews({ page }: { page: string }) {
  const views = useRead<View[]>(ofWorkspace('/views'))
  const [isNaming, setNaming] = useState(false)
  const [name, setName] = useState('')
  const { isBusy, problem, run } = useAction()
  const { path, query } = place.value
  const now = new URLSearchParams(query)
  now.delete('page')
  const text = now.toString()
  const mine = (views.data ?? []).filter((view) => view.page === page)
  const open = mine.find((view) => view.query === text)
  const save = (all: (Omit<View, 'id'> & { id?: string })[]) =>
    panel('PUT', `${scope.value.panelPath}/views`, { views: all })
  if (views.data === undefined || (mine.length === 0 && text === '')) return null
  return (
    <div class="views">
      <nav class="tabs" aria-label="Saved views">
        <a href={path} aria-current={text === '' ? 'page' : undefined}>
          All
        </a>
        {mine.map((view) => (
          <a
            key={view.id}
            href={`${path}?${view.query}`}
            aria-current={view === open ? 'page' : undefined}
          >
            {view.name}
          </a>
        ))}
      </nav>
      {open !== undefined ? (
        <Button
          class="small"
          kind="quiet"
          isBusy={isBusy}
          onClick={() =>
            run(async () => {
              await save((views.data ?? []).filter((view) => view.id !== open.id))
              views.reload()
              go(path, 'replace')
            })
          }
        >
          Remove this view
        </Button>
      ) : text === '' ? null : (
        <button type="button" class="button quiet small" onClick={() => setNaming(true)}>
          <Icon name="star" />
          <span>Save this view</span>
        </button>
      )}
      {isNaming ? (
        <Dialog title="Save this view" onClose={() => setNaming(false)}>
          <form
            class="stack"
            onSubmit={onSubmit(() =>
              run(async () => {
                await save([...(views.data ?? []), { name: name.trim(), page, query: text }])
                setNaming(false)
                setName('')
                views.reload()
              }),
            )}
          >
            <Text
              label="Name"
              value={name}
              onValue={setName}
              required
              maxLength={40}
              hint="Only you see it."
            />
            <ProblemNote problem={problem} />
            <Button kind="primary" type="submit" isBusy={isBusy}>
              Save
            </Button>
          </form>
        </Dialog>
      ) : null}
    </div>
  )
}
