# bash completion for clustersim. Commands, options and kinds are asked from the program itself.
_clustersim_options ()
{
  # "  -o, --output=FILE   Text" → --output= ; "  --quiet   Text" → --quiet
  "$1" "$2" --help 2>/dev/null | sed -n 's/^  \(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\)\(=\{0,1\}\).*/\2\3/p'
}

_clustersim_names () { "$1" list "$2" --format csv 2>/dev/null; }

_clustersim ()
{
  local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=$("$program" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$cur")
    return
  fi
  case $cur in
    -*) words=$(_clustersim_options "$program" "$command") ;;
    *)
      case $command in
        predict | sweep | plan | explain | collective | report)
          words=$(_clustersim_names "$program" scenarios)
          ;;
        campaign) words=$(_clustersim_names "$program" campaigns) ;;
        list) words="gpus models fabrics software schedules scenarios campaigns prices failures" ;;
        import | plot)
          [ "$COMP_CWORD" -ne 2 ] || words=$("$program" "$command" --help 2>/dev/null |
            sed -n 's/.*KIND: \([a-z0-9, -]*\).*/\1/p' | tr -d ,)
          ;;
      esac
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  if [ "${#COMPREPLY[@]}" -eq 1 ]; then
    case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac
  fi
  case $cur in
    -*) ;;
    *) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur") ;;
  esac
}

complete -o filenames -F _clustersim clustersim
