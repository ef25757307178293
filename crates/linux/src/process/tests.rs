use super::*;

fn shell(line: &str) -> Job {
    Job::new("sh", &["-c", line])
}

fn run(job: &Job) -> Result<String, ProcessError> {
    job.run(|path| Command::new(path), None)
}

#[test]
fn output_status_and_input_come_through() {
    let output = run(&shell("cat; echo no >&2").with_input(Input::text("in"))).unwrap();
    assert_eq!(output, "in");
    let error = run(&shell("echo wrong >&2; exit 3")).unwrap_err();
    assert_eq!(error.to_string(), "sh failed (exit status: 3): wrong");
}

#[test]
fn arguments_are_not_seen_by_a_shell() {
    let finished = run(&Job::new("echo", &["$HOME;`id`", "*"])).unwrap();
    assert_eq!(finished, "$HOME;`id` *\n");
}

#[test]
fn a_large_input_is_streamed_while_output_is_read() {
    let lines = |out: &mut dyn Write| (0..300_000).try_for_each(|n| writeln!(out, "line {n}"));
    let job = Job::new("cat", &[]).with_input(Input::writer(lines));
    let mut seen = 0u64;
    job.run_lines(
        |path| Command::new(path),
        None,
        |line| {
            assert_eq!(line, format!("line {seen}"));
            seen += 1;
        },
    )
    .unwrap();
    assert_eq!(seen, 300_000);
    let kept = run(&job).unwrap();
    assert_eq!(kept.len(), KEPT);
}

#[test]
fn output_is_read_whole_by_a_slow_reader() {
    let (mut seen, mut slow) = (0, 0);
    let each = |_: &str| {
        seen += 1;
        if seen % 20_000 == 0 && slow < 10 {
            slow += 1;
            std::thread::sleep(GRACE / 2);
        }
    };
    shell("seq 200000")
        .run_lines(|path| Command::new(path), None, each)
        .unwrap();
    assert_eq!(seen, 200_000);
}

#[test]
fn what_hangs_is_killed_with_all_that_it_started() {
    let began = Instant::now();
    // The child of the shell holds the pipes open and does not read the input.
    let endless = |out: &mut dyn Write| loop {
        out.write_all(&[b'x'; 4096])?;
    };
    let job = shell("echo begun >&2; sleep 77 & sleep 78").with_input(Input::writer(endless));
    let error = run(&job.within(Duration::from_secs(3))).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(
        error.to_string(),
        "sh did not end within 3 s and was killed: begun"
    );
}

#[test]
fn what_a_program_leaves_running_does_not_hold_it_up() {
    let began = Instant::now();
    let finished = run(&shell("sleep 79 & echo $!")).unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
    let left = PathBuf::from(format!("/proc/{}/stat", finished.trim()));
    let gone = || std::fs::read_to_string(&left).map_or(true, |stat| stat.contains(") Z "));
    let end = Instant::now() + Duration::from_secs(10);
    while !gone() {
        assert!(Instant::now() < end, "it still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupt_ends_it() {
    let stop = AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        let job = scope.spawn(|| shell("sleep 80").run(|path| Command::new(path), Some(&stop)));
        stop.store(true, Ordering::Relaxed);
        job.join().unwrap().unwrap_err()
    });
    assert_eq!(error.to_string(), "sh was ended by an interrupt");
}

#[test]
fn an_input_that_fails_or_is_not_read_is_an_error() {
    let broken = Input::writer(|_| Err(io::Error::other("no more entries")));
    let error = run(&Job::new("cat", &[]).with_input(broken)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cat did not get all of its input: no more entries"
    );
    let much = Input::writer(|out| (0..1000).try_for_each(|_| out.write_all(&[b'x'; 4096])));
    let error = run(&Job::new("true", &[]).with_input(much)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("true did not get all of its input"),
        "{error}"
    );
}

#[test]
fn missing_programs_are_named_with_their_package() {
    for hostile in ["", "a\0b", "/", "/etc", "/nonexistent/nft"] {
        assert!(
            matches!(
                run(&Job::new(hostile, &[])),
                Err(ProcessError::NotInstalled(_))
            ),
            "{hostile:?}"
        );
    }
    assert_eq!(
        ProcessError::NotInstalled("iptables-legacy-restore".into()).to_string(),
        "iptables-legacy-restore is not installed: apt-get install iptables"
    );
    assert!(find("sh").is_some());
}

#[test]
fn the_start_of_a_process_is_field_22() {
    let fields: Vec<String> = (4..30).map(|n| n.to_string()).collect();
    assert_eq!(
        parse_start(&format!("7 (a) b) c) S {}", fields.join(" "))),
        Some(22)
    );
    assert_eq!(parse_start(&format!("7 (a) Z {}", fields.join(" "))), None);
    for hostile in ["", ")", "7 (a) S", "7 (a) S x x"] {
        assert_eq!(parse_start(hostile), None);
    }
    assert!(started(std::process::id()).is_some());
    assert!(started(0).is_none());
}

/// The kernel takes the end of the thread that started a program for the end of linerate.
#[test]
fn a_program_that_outlives_linerate_goes_on_and_may_write() {
    let file = std::env::temp_dir().join(format!("linerate-outlives-{}", std::process::id()));
    let go = file.with_extension("go");
    let line = format!(
        "n=0; until [ -e {} ] || [ $((n += 1)) = 1000 ]; do sleep 0.01; done; echo nobody reads this; echo done >{}",
        go.display(),
        file.display()
    );
    let ended = |job: Job, goes_on: bool| {
        let start = move || {
            let mut command = Command::new("sh");
            command.args(&job.args);
            let mut running = Running::start(command, &job).unwrap();
            running.outlets = [None, None].map(Outlet::new);
            let pid = running.child.id();
            std::mem::forget(running);
            pid
        };
        let pid = thread::spawn(start).join().unwrap();
        if goes_on {
            std::fs::write(&go, "").unwrap();
        }
        let is_over = || {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |s| s.contains(") Z "))
        };
        let end = Instant::now() + Duration::from_secs(20);
        while !is_over() {
            assert!(Instant::now() < end, "it still runs");
            thread::sleep(Duration::from_millis(5));
        }
        std::fs::remove_file(&file).is_ok()
    };
    assert!(!ended(shell(&line), false), "others end with linerate");
    assert!(ended(shell(&line).outliving(), true));
    std::fs::remove_file(&go).unwrap();
}
