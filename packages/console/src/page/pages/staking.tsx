import { useState } from 'preact/hooks'
import { query } from '../api/http.ts'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { Stake, Staking as Stakes, TransactionPage, WalletBalance } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Choice, LinkButton, onSubmit, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Figures, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { amountError, amountOf, useSequence } from '../parts/pick.tsx'
import { Amount, Id, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { TransactionTable } from '../parts/transaction-table.tsx'
import { go, place, withQuery } from '../router.ts'

const LIVE = /^(?:staking|transaction)\./
const NOT_FINAL_NOTE = 'an estimate, until the unstake is confirmed'

function Order({ address, staked, onDone }: { address: string; staked: Stakes; onDone(): void }) {
  const [action, setAction] = useState<'stake' | 'unstake'>('stake')
  const [resource, setResource] = useState('ENERGY')
  const [text, setText] = useState('')
  const { sequence, renew } = useSequence()
  const { isBusy, problem, run } = useAction()
  const amount = amountOf(text)
  const submit = () =>
    run(async () => {
      const made = await sign<Stake>('POST', `/dav/v1/${action}`, {
        asset: 'TRX',
        address,
        resource,
        amount,
        sequence_id: sequence,
      })
      renew()
      setText('')
      toast(action === 'stake' ? 'The stake is ordered' : 'The unstake was requested')
      onDone()
      go(pageAt(`/transactions/${made.id}`))
    })
  const most = resource === 'ENERGY' ? staked.staked.ENERGY : staked.staked.BANDWIDTH
  return (
    <form class="stack" onSubmit={onSubmit(submit)}>
      <div class="switch" role="group" aria-label="Stake or unstake">
        <button type="button" aria-pressed={action === 'stake'} onClick={() => setAction('stake')}>
          Stake
        </button>
        <button
          type="button"
          aria-pressed={action === 'unstake'}
          onClick={() => setAction('unstake')}
        >
          Unstake
        </button>
      </div>
      <Choice
        label="For"
        value={resource}
        onValue={setResource}
        options={[
          ['ENERGY', 'Energy: token transfers'],
          ['BANDWIDTH', 'Bandwidth: every transfer'],
        ]}
      />
      <Text
        label="Amount"
        value={text}
        onValue={setText}
        inputMode="decimal"
        suffix="TRX"
        required
        maxLength={40}
        error={amountError(text)}
        hint={
          action === 'unstake' ? (
            <>
              Staked for it: <Amount value={most} of="TRX" />
            </>
          ) : (
            'It leaves what can be sent, and stays yours'
          )
        }
      />
      {action === 'unstake' ? (
        <Note tone="info">
          <p>
            The resource is gone at once; the TRX comes back after 14 days, when you release it.
          </p>
        </Note>
      ) : null}
      <KeyNotice />
      <ProblemNote problem={problem} />
      <div class="row">
        <Button kind="primary" type="submit" icon="key" isBusy={isBusy} disabled={amount === null}>
          {action === 'stake' ? 'Stake' : 'Unstake'}
        </Button>
      </div>
    </form>
  )
}

function Release({
  address,
  releasable,
  onDone,
}: {
  address: string
  releasable: string
  onDone(): void
}) {
  const { sequence, renew } = useSequence()
  const { isBusy, problem, run } = useAction()
  return (
    <>
      <ProblemNote problem={problem} />
      <Button
        icon="key"
        isBusy={isBusy}
        disabled={Number(releasable) === 0}
        onClick={() =>
          run(async () => {
            const made = await sign<Stake>('POST', '/dav/v1/release-unstaked', {
              asset: 'TRX',
              address,
              sequence_id: sequence,
            })
            renew()
            toast('The release is ordered')
            onDone()
            go(pageAt(`/transactions/${made.id}`))
          })
        }
      >
        Release <Amount value={releasable} of="TRX" />
      </Button>
    </>
  )
}

/** Page of TRX that is locked for energy and bandwidth. */
export function Staking() {
  const wallets = useRead<WalletBalance[]>(mirror('/dac/v1/wallets?asset=TRX'), LIVE)
  const wallet = wallets.data?.[0]
  const named = place.value.query.get('address')
  const address = named ?? wallet?.omnibus_address ?? null
  const stakes = useRead<Stakes>(
    wallet === undefined || address === null
      ? null
      : mirror(`/dav/v1/staking${query({ address })}`),
    LIVE,
  )
  const history = useRead<TransactionPage>(
    mirror('/dac/v1/transactions?asset=TRX&dest_type=STAKING&limit=10'),
    LIVE,
  )
  const { data } = stakes
  if (wallets.data?.length === 0) {
    return (
      <Page title="Staking">
        <Empty
          icon="staking"
          title="There is no TRX wallet"
          action={
            <LinkButton href={pageAt('/wallets?new=')} kind="primary">
              Create a wallet
            </LinkButton>
          }
        >
          Staked TRX gives energy and bandwidth, which pay for transfers on Tron.
        </Empty>
      </Page>
    )
  }
  return (
    <Page
      title="Staking"
      lead="Staked TRX gives energy and bandwidth, which pay for transfers on Tron instead of the gas tank."
    >
      <ProblemNote problem={wallets.problem ?? stakes.problem} retry={stakes.reload} />
      {data === undefined ? (
        stakes.problem === null ? (
          <Skeleton lines={4} />
        ) : null
      ) : (
        <>
          <Figures
            of={[
              { name: 'Staked for energy', value: <Amount value={data.staked.ENERGY} of="TRX" /> },
              {
                name: 'Staked for bandwidth',
                value: <Amount value={data.staked.BANDWIDTH} of="TRX" />,
              },
              { name: 'Can be released', value: <Amount value={data.releasable} of="TRX" /> },
              { name: 'Can be staked', value: <Amount value={wallet?.balance} of="TRX" /> },
            ]}
          />
          <div class="columns">
            <div class="column-main">
              <Card
                title="Unstaking"
                isBare
                actions={
                  address === null ? undefined : (
                    <Release
                      address={address}
                      releasable={data.releasable}
                      onDone={stakes.reload}
                    />
                  )
                }
              >
                <Table
                  label="Unstaking"
                  reading={stakes}
                  rows={data.cooling}
                  keyOf={({ amount, release_at: at }) => `${at} ${amount}`}
                  columns={[
                    { head: 'Amount', cell: ({ amount }) => <Amount value={amount} of="TRX" /> },
                    { head: 'Released', cell: ({ release_at: at }) => <Time at={at} isLong /> },
                    {
                      head: 'State',
                      isMinor: true,
                      cell: ({ confirmed }) => (
                        <Status
                          of={confirmed ? 'confirmed' : 'pending'}
                          word={confirmed ? 'On the chain' : NOT_FINAL_NOTE}
                        />
                      ),
                    },
                  ]}
                  empty={
                    <Empty icon="staking" title="Nothing cools down">
                      What is unstaked waits here for 14 days.
                    </Empty>
                  }
                />
              </Card>
              <Card title="Latest requests" isBare>
                <TransactionTable
                  reading={history}
                  rows={history.data?.data}
                  empty={<Empty icon="transactions" title="No stakes yet" />}
                />
              </Card>
            </div>
            <div class="column-side">
              <Card title="Stake or unstake">
                {address === null ? null : (
                  <Order key={address} address={address} staked={data} onDone={stakes.reload} />
                )}
              </Card>
              <Card
                title="Who gets the resource"
                lead="The wallet’s own address, or another address."
              >
                <Text
                  label="Address"
                  value={named ?? ''}
                  placeholder={wallet?.omnibus_address ?? ''}
                  class="input code"
                  maxLength={64}
                  onValue={(value) => go(withQuery({ address: value.trim() }), 'replace')}
                  hint={
                    address === null ? undefined : (
                      <>
                        Now: <Id value={address} label="address" />
                      </>
                    )
                  }
                />
              </Card>
            </div>
          </div>
        </>
      )}
    </Page>
  )
}
